import Foundation
import NIOCore
import NIOPosix

/// Bytes over a socket, for what no HTTP client says.
enum RawConnection {
  /// Sends the bytes, closes its own half of the connection if that is wanted, then reads until the server closes the connection.
  static func exchange(_ text: String, port: Int, closesItsHalf: Bool = false) async throws -> String {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(ByteBuffer(string: text))
      if closesItsHalf { outbound.finish() }
      var received = ByteBuffer()
      for try await var chunk in inbound { received.writeBuffer(&chunk) }
      return String(buffer: received)
    }
  }

  /// The answers in what was received, as pairs of head and body.
  static func split(_ text: String) -> [(head: String, body: String)] {
    var answers: [(String, String)] = []
    var rest = Substring(text)
    while let end = rest.range(of: "\r\n\r\n") {
      let head = String(rest[..<end.lowerBound])
      rest = rest[end.upperBound...]
      let next = rest.range(of: "HTTP/1.1 ")?.lowerBound ?? rest.endIndex
      answers.append((head, String(rest[..<next])))
      rest = rest[next...]
    }
    return answers
  }
}
