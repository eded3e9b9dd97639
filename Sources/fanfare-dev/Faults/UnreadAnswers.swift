import Foundation
import NIOCore
import NIOPosix
import Roles

/// Clients that ask for long answers and read nothing, beside normal callers.
///
/// The front end may hold answers within its budget only, of which one address gets half. The cost of the reads
/// themselves for other callers is judged by `ReadFlood`.
enum UnreadAnswers {
  private static let connections = 200
  /// The requests of each connection.
  private static let requests = 20
  private static let user = "reader"
  /// The megabytes by which the front end may grow. Without a budget each connection would hold an answer of 0.7 MB.
  private static let growth = 100.0

  static let scenario = FaultScenario("readers that read nothing beside normal callers") { deployment, _ in
    let frontEnd = try await deployment.frontEnd
    guard let url = URL(string: frontEnd.base), let host = url.host, let port = url.port else {
      throw BenchError("the front end has no address")
    }
    try await NormalCallers.registerDevices(of: user, tagLength: 100, at: frontEnd)
    let (idle, before) = (try await NormalCallers.p99(at: frontEnd), try await deployment.memoryOfFrontEnd())
    let credentials = Data("\(user):\(user)".utf8).base64EncodedString()
    let request = "GET /api/registrations HTTP/1.1\r\nHost: \(host)\r\nAuthorization: Basic \(credentials)\r\n\r\n"
    let bytes = ByteBuffer(string: String(repeating: request, count: requests))
    let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.autoRead, value: false)
      .channelOption(.socketOption(.so_rcvbuf), value: 4096)
    var channels: [any Channel] = []
    defer { for channel in channels { channel.close(promise: nil) } }
    for _ in 0..<connections {
      let channel = try await bootstrap.connect(host: host, port: port).get()
      channels.append(channel)
      try await channel.writeAndFlush(bytes)
    }
    // Until the lists are read from the registry.
    try await Task.sleep(for: .seconds(15))
    let flooded = try await NormalCallers.p99(at: frontEnd)
    let grown = try await deployment.memoryOfFrontEnd() - before
    await deployment.note("p99 \(idle.text) → \(flooded.text) ms; the front end grew by \(grown.text) MB")
    guard grown <= growth else { throw BenchError("the front end grew by \(grown.text) MB") }
    return []
  }
}
