import FanfareCore
import Foundation
import NIOCore
import NIOPosix
import Roles
import Synchronization

/// Clients that ask for long answers and read nothing, beside normal callers.
///
/// The front end may hold answers within its budget only, of which one address gets half. What the reads themselves cost
/// other callers is judged by `ReadFlood`.
final class UnreadAnswers: Sendable {
  private static let connections = 200
  /// The requests of each connection.
  private static let requests = 20
  private static let devices = 100
  private static let tags = 60
  private static let user = "reader"
  /// The megabytes by which the front end may grow. Without a budget each connection would hold an answer of 0.7 MB.
  private static let growth = 100.0

  private let words = Mutex<String?>(nil)

  var scenario: FaultScenario {
    FaultScenario(
      "readers that read nothing beside normal callers",
      inspect: { _, _ in FaultFindings(observed: self.words.withLock { $0 }) },
      injure: { deployment, _ in
        try await self.hold(deployment)
        return []
      })
  }

  private func hold(_ deployment: FaultDeployment) async throws {
    guard let frontEnd = await deployment.frontEnds.first, let url = URL(string: frontEnd.base), let host = url.host,
      let port = url.port
    else { throw BenchError("there is no front end") }
    try await register(at: frontEnd)
    let (idle, before) = (try await LoginFlood.p99(at: frontEnd), try await deployment.memoryOfFrontEnd())
    let credentials = Data("\(Self.user):\(Self.user)".utf8).base64EncodedString()
    let request = "GET /api/registrations HTTP/1.1\r\nHost: \(host)\r\nAuthorization: Basic \(credentials)\r\n\r\n"
    let bytes = ByteBuffer(string: String(repeating: request, count: Self.requests))
    let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.autoRead, value: false)
      .channelOption(.socketOption(.so_rcvbuf), value: 4096)
    var channels: [any Channel] = []
    defer { for channel in channels { channel.close(promise: nil) } }
    for _ in 0..<Self.connections {
      let channel = try await bootstrap.connect(host: host, port: port).get()
      channels.append(channel)
      try await channel.writeAndFlush(bytes)
    }
    // Until the lists are read from the registry.
    try await Task.sleep(for: .seconds(15))
    let flooded = try await LoginFlood.p99(at: frontEnd)
    let grown = try await deployment.memoryOfFrontEnd() - before
    words.withLock { words in
      words = "p99 \(idle.text) → \(flooded.text) ms; the front end grew by \(grown.text) MB"
    }
    guard grown <= Self.growth else { throw BenchError("the front end grew by \(grown.text) MB") }
  }

  /// Registers devices with many tags, so that the list of them is long.
  private func register(at frontEnd: APIClient) async throws {
    for device in 0..<Self.devices {
      let tags = (0..<Self.tags).map { "\"t\(device)-\($0)-\(String(repeating: "x", count: 100))\"" }
      _ = try await frontEnd.request(
        "PUT", "/api/installations/reader-\(device)", user: Self.user,
        body: #"{"platform":"fcm","handle":"reader-\#(device)","tags":[\#(tags.joined(separator: ","))]}"#)
    }
  }
}
