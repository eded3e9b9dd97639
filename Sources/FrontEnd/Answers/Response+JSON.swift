import HTTPTypes
import Hummingbird

extension Response {
  /// An answer whose body is the given JSON.
  static func json(_ body: [UInt8], status: HTTPResponse.Status = .ok, location: String? = nil) -> Response {
    var headers: HTTPFields = [.contentType: "application/json"]
    if let location { headers[.location] = location }
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }
}
