import HTTPTypes
import Hummingbird
import NIOCore

extension Request {
  /// The whole body. Throws `.tooLarge` as soon as it is known to have more than `limit` bytes: at best before any of
  /// it has been read.
  func bytes(upTo limit: Int) async throws -> ArraySlice<UInt8> {
    if let field = headers[.contentLength], let length = Int(field), length > limit {
      throw Refusal(.tooLarge, "the body has more than \(limit) bytes")
    }
    do {
      let buffer = try await body.collect(upTo: limit)
      return Array(buffer.readableBytesView)[...]
    } catch is NIOTooManyBytesError {
      throw Refusal(.tooLarge, "the body has more than \(limit) bytes")
    }
  }
}
