import FanfareCore
import HTTPTypes
import Hummingbird

/// The answer to a request that failed: a problem document (RFC 9457).
struct Problem {
  static let mediaType = "application/problem+json"

  let refusal: Refusal
  let requestID: String

  /// The standard's members, `code` and `requestId`.
  var document: [UInt8] {
    let (code, answer) = (refusal.code.rawValue, refusal.code.answer)
    return JSONWriter.object {
      $0.member("type", "urn:fanfare:problem:" + code)
      $0.member("title", answer.title)
      $0.member("status", answer.status.code)
      $0.member("detail", refusal.detail)
      $0.member("code", code)
      $0.member("requestId", requestID)
    }
  }

  /// `Content-Type`, `Cache-Control`, and the header fields that the status requires.
  var headers: HTTPFields {
    var fields: HTTPFields = [.contentType: Self.mediaType, .cacheControl: "no-store"]
    if let seconds = refusal.retryAfter ?? refusal.code.answer.retryAfter { fields[.retryAfter] = String(seconds) }
    switch refusal.code {
    // RFC 7617 §2.1: the charset tells clients how to encode names that are not ASCII.
    case .unauthenticated: fields[.wwwAuthenticate] = #"Basic realm="fanfare", charset="UTF-8""#
    case .methodNotAllowed: fields[.allow] = refusal.allowedMethods.map(\.rawValue).joined(separator: ", ")
    default: break
    }
    return fields
  }

  /// The complete answer.
  var response: Response {
    Response(
      status: refusal.code.answer.status, headers: headers,
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: document)))
  }
}
