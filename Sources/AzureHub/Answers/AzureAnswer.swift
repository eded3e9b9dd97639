import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes

/// Answers in Azure's form.
enum AzureAnswer {
  static let xml = "application/xml; charset=utf-8"
  static let json = "application/json; charset=utf-8"

  /// The caller's rule lacks the right that the operation needs.
  static let lacksRight = Refusal(.forbidden, "the rule of the key lacks the right that this operation needs")
  static let lacksManage = Refusal(.forbidden, "Manage claim is required for this operation.")

  /// An answer without a body. Clients expect the type of a document nevertheless.
  static func empty(_ status: HTTPResponse.Status, location: String? = nil) -> Answer {
    var headers: HTTPFields = [.contentType: xml]
    if let location { headers[.location] = location }
    return Answer(status: status, headers: headers)
  }

  static func document(_ bytes: [UInt8], type: String = xml, status: HTTPResponse.Status = .ok) -> Answer {
    Answer(status: status, headers: [.contentType: type, .cacheControl: "no-store"], body: bytes)
  }

  /// Adds the fields that all answers have.
  static func complete(_ response: inout Answer, of request: Exchange) {
    let id = trackingID(of: request)
    response.headers[.trackingID] = id
    response.headers[.correlationID] = id
    if request.isSecure { response.headers[.strictTransportSecurity] = "max-age=2592000" }
  }

  /// Answers a refusal.
  static func answer(to refusal: Refusal, of request: Exchange, at now: UnixTime) -> Answer {
    var (status, detail) = (refusal.status, refusal.detail)
    switch refusal.code {
    case .unauthenticated: detail = reason(of: request, at: now)
    case .forbidden where refusal == lacksManage: status = .unauthorized
    // Azure has no status 422, and its clients know 400.
    case .impossible: status = .badRequest
    default: break
    }
    var response: Answer
    if refusal == lacksRight {
      response = empty(.forbidden)
    } else {
      response = document(error(status, detail, id: trackingID(of: request), at: now), status: status)
    }
    if let seconds = refusal.secondsToRetry { response.headers[.retryAfter] = String(seconds) }
    if refusal.code == .methodNotAllowed {
      response.headers[.allow] = refusal.allowedMethods.map(\.rawValue).joined(separator: ", ")
    }
    complete(&response, of: request)
    return response
  }

  /// The body of a refusal.
  static func error(_ status: HTTPResponse.Status, _ detail: String, id: String, at now: UnixTime) -> [UInt8] {
    var body = Array("<Error><Code>\(status.code)</Code><Detail>".utf8)
    body.appendXML("\(detail).TrackingId:\(id),TimeStamp:\(AzureTime.invariant(now))")
    body.append(contentsOf: "</Detail></Error>".utf8)
    return body
  }

  /// Why a request was not authenticated. It tells nothing about hubs and rules.
  private static func reason(of request: Exchange, at now: UnixTime) -> String {
    guard let field = request.headers[.authorization] else {
      return "MissingToken: The request has no authorization token."
    }
    guard let token = SharedAccessToken(field) else {
      return "MalformedToken: The authorization token must be a SharedAccessSignature with sr, sig, se and skn."
    }
    guard token.expiry > now else { return "ExpiredToken: The token has expired." }
    return "InvalidSignature: The token has an invalid signature."
  }

  /// The id that the client gave the request, or the server's.
  static func trackingID(of request: Exchange) -> String {
    let given = request.headers[.trackingID]
    let isPlain = given.map {
      (1...128).contains($0.utf8.count) && $0.utf8.allSatisfy { $0.isLetterOrDigit || "-_.".utf8.contains($0) }
    }
    return isPlain == true ? given ?? request.id : request.id
  }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; these literals are valid.
  static let trackingID = HTTPField.Name("TrackingId")!
  static let correlationID = HTTPField.Name("x-ms-correlation-request-id")!
}
