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

  /// Sends bytes and reads until the server closes or resets the connection.
  static func exchangeUntilClosed(_ text: String, port: Int) async throws -> String {
    do { return try await exchange(text, port: port) } catch is IOError { return "" }
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

  /// Sends bytes and returns the first answer, without the end of the request. Then closes the connection.
  static func firstAnswer(
    to text: String, host: String = "127.0.0.1", port: Int
  ) async throws -> (head: String, body: String) {
    var answer = (head: "", body: "")
    try await converse(host: host, port: port) { exchange in answer = try await exchange(text) }
    return answer
  }

  /// Sends a request and reads its answer, then sends bytes, closes its half, and reads until the server closes.
  static func exchange(_ bytes: [UInt8], after first: String, port: Int) async throws -> String {
    try await connect(port).executeThenClose { inbound, outbound in
      var iterator = inbound.makeAsyncIterator()
      try await outbound.write(ByteBuffer(string: first))
      var answer = ""
      while !isWhole(answer), let chunk = try await iterator.next() { answer += String(buffer: chunk) }
      try await outbound.write(ByteBuffer(bytes: bytes))
      outbound.finish()
      var received = ByteBuffer()
      while var chunk = try await iterator.next() { received.writeBuffer(&chunk) }
      return String(buffer: received)
    }
  }

  /// Opens a connection and calls `body` with a function that sends bytes and returns the next answer.
  static func converse(
    host: String = "127.0.0.1", port: Int,
    _ body: ((String) async throws -> (head: String, body: String)) async throws -> Void
  ) async throws {
    try await connect(port, host: host).executeThenClose { inbound, outbound in
      var iterator = inbound.makeAsyncIterator()
      try await body { text in
        try await outbound.write(ByteBuffer(string: text))
        var received = ""
        while true {
          guard let chunk = try await iterator.next(isolation: #isolation) else {
            throw UnexpectedReply(text: received)
          }
          received += String(buffer: chunk)
          if isWhole(received), let answer = split(received).first { return answer }
        }
      }
    }
  }

  /// Opens a connection for each text, sends it, and keeps the connections open until `body` returns.
  static func holding(_ texts: [String], port: Int, _ body: () async throws -> Void) async throws {
    guard let first = texts.first else { return try await body() }
    try await connect(port).executeThenClose { _, outbound in
      try await outbound.write(ByteBuffer(string: first))
      try await holding(Array(texts.dropFirst()), port: port, body)
    }
  }

  /// Sends bytes, calls `body` with a function that sends more, and resets the connection.
  static func holding(
    bytes: [UInt8], port: Int, _ body: ((_ more: [UInt8]) async throws -> Void) async throws -> Void
  ) async throws {
    let channel = try await connect(port)
    let options = try #require(channel.channel as? any SocketOptionProvider)
    try await options.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
    try await channel.executeThenClose { _, outbound in
      try await outbound.write(ByteBuffer(bytes: bytes))
      try await body { try await outbound.write(ByteBuffer(bytes: $0)) }
    }
  }

  private static func connect(
    _ port: Int, host: String = "127.0.0.1"
  ) async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
    try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.allowRemoteHalfClosure, value: true)
      .connect(host: host, port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
      }
  }

  /// Whether the received text has a whole answer.
  private static func isWhole(_ received: String) -> Bool {
    guard let end = received.range(of: "\r\n\r\n")?.upperBound else { return false }
    let field = received[..<end].lowercased().firstMatch(of: /\r\ncontent-length: (\d+)\r\n/)?.output.1
    return received[end...].utf8.count >= field.flatMap({ Int($0) }) ?? 0
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
