import HTTPTypes
import Hummingbird
import NIOCore

/// A body that is JSON already.
struct JSONResponse: ResponseGenerator {
  private let body: ByteBuffer

  init(_ bytes: [UInt8]) {
    body = ByteBuffer(bytes: bytes)
  }

  init(_ text: String) {
    body = ByteBuffer(string: text)
  }

  func response(from request: Request, context: some RequestContext) -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/json; charset=utf-8"], body: ResponseBody(byteBuffer: body))
  }
}
