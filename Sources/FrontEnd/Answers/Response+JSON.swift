import HTTPTypes
import Hummingbird

extension Response {
  /// An answer whose body is the given JSON; `isPrivate`: one that nobody on the way may keep.
  static func json(
    _ body: [UInt8], status: HTTPResponse.Status = .ok, location: String? = nil, isPrivate: Bool = false
  ) -> Response {
    var headers: HTTPFields = [.contentType: "application/json"]
    if isPrivate { headers[.cacheControl] = "no-store" }
    if let location { headers[.location] = location }
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }
}
