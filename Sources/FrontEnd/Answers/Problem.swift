import FanfareCore
import HTTPTypes
import Hummingbird

/// The answer to a request that failed: a problem document (RFC 9457).
struct Problem {
  /// The media type of the document.
  static let mediaType = "application/problem+json"

  let refusal: Refusal
  let requestID: String

  /// The document: the standard's members, the stable `code`, and the request's id.
  var document: [UInt8] {
    let appearance = refusal.code.appearance
    var output: [UInt8] = []
    output.reserveCapacity(256)
    output.append(literal: #"{"type":"urn:fanfare:problem:"#)
    output.append(contentsOf: refusal.code.rawValue.utf8)
    output.append(literal: #"","title":"#)
    output.appendJSON(appearance.title)
    output.append(literal: #","status":"#)
    output.appendJSON(appearance.status.code)
    output.append(literal: #","detail":"#)
    output.appendJSON(refusal.detail)
    output.append(literal: #","code":"#)
    output.appendJSON(refusal.code.rawValue)
    output.append(literal: #","requestId":"#)
    output.appendJSON(requestID)
    output.append(UInt8(ascii: "}"))
    return output
  }

  /// The header fields that belong to the failure: `Content-Type`, and what the status asks for besides.
  var headers: HTTPFields {
    var fields: HTTPFields = [.contentType: Self.mediaType, .cacheControl: "no-store"]
    if let seconds = refusal.retryAfter ?? refusal.code.appearance.retryAfter { fields[.retryAfter] = String(seconds) }
    switch refusal.code {
    // RFC 7617 §2.1: the charset tells the client how to encode names that are not ASCII.
    case .unauthenticated: fields[.wwwAuthenticate] = #"Basic realm="fanfare", charset="UTF-8""#
    case .methodNotAllowed: fields[.allow] = refusal.allowedMethods.map(\.rawValue).joined(separator: ", ")
    default: break
    }
    return fields
  }

  /// The whole answer.
  var response: Response {
    Response(
      status: refusal.code.appearance.status, headers: headers,
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: document)))
  }
}
