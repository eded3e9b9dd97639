import HTTPTypes
import Hummingbird

extension Response {
  /// Makes an answer with a JSON body; `isPrivate`: caches must not store it.
  static func json(
    _ body: [UInt8], status: HTTPResponse.Status = .ok, location: String? = nil, isPrivate: Bool = false
  ) -> Response {
    var headers: HTTPFields = [.contentType: "application/json"]
    if isPrivate { headers[.cacheControl] = "no-store" }
    if let location { headers[.location] = location }
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }
}
