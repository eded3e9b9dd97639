import Foundation
import NIOCore
import NIOPosix
import Testing

/// Raw bytes over a socket, for requests that no HTTP client sends.
enum RawConnection {
  /// Sends bytes and reads until the server closes the connection.
  /// `closesItsHalf`: closes its half after sending.
  static func exchange(_ text: String, port: Int, closesItsHalf: Bool = false) async throws -> String {
    let channel = try await connect(port)
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(ByteBuffer(string: text))
      if closesItsHalf { outbound.finish() }
      var received = ByteBuffer()
      for try await var chunk in inbound { received.writeBuffer(&chunk) }
      return String(buffer: received)
    }
  }

  /// Sends bytes, reads until the server closes its half, then sends until writing fails.
  ///
  /// - Returns: The received text, and the number of bytes sent after it.
  static func press(_ text: String, port: Int) async throws -> (text: String, sent: Int) {
    let channel = try await connect(port)
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(ByteBuffer(string: text))
      var received = ByteBuffer()
      for try await var chunk in inbound { received.writeBuffer(&chunk) }
      let more = ByteBuffer(repeating: UInt8(ascii: "x"), count: 65_536)
      var sent = 0
      while true {
        // Returns when the bytes are in the socket's buffer.
        do { try await channel.channel.writeAndFlush(more) } catch { return (String(buffer: received), sent) }
        sent += more.readableBytes
      }
    }
  }

  /// Sends bytes, reads the first answer, calls `pause`, and reads until the connection ends.
  static func exchange(_ text: String, port: Int, pausing pause: () async throws -> Void) async throws -> String {
    let channel = try await connect(port)
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(ByteBuffer(string: text))
      var iterator = inbound.makeAsyncIterator()
      // Ensures that the server has read the request.
      var received = try #require(await iterator.next())
      try await pause()
      do {
        while var chunk = try await iterator.next() { received.writeBuffer(&chunk) }
      } catch is IOError {
        // The server reset the connection.
      }
      return String(buffer: received)
    }
  }

  private static func connect(_ port: Int) async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
    try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.allowRemoteHalfClosure, value: true)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
      }
  }

  /// Splits received text into answers.
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
