import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import fanfare_dev

/// How a role ends when it is told to.
@Suite(.timeLimit(.minutes(3))) struct StoppingTests {
  private let head = "POST /api/sends HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"

  /// Starts a front end, sends it a request without its body, and calls `body` when it has been answered.
  private func withUnfinishedRequest(_ fields: String, _ body: (ChildProcess) async throws -> Void) async throws {
    try await Deployment.with { deployment in
      let process = try deployment.startFrontEndProcess()
      let addresses = try await process.addresses(of: "api", "operations")
      let operations = Caller(base: "http://" + addresses[1])
      try await eventually("the front end to be ready") { try await operations.get("/readyz").status == 200 }
      let port = try #require(addresses[0].split(separator: ":").last.flatMap { Int($0) })
      let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connect(host: "127.0.0.1", port: port) { channel in
          channel.eventLoop.makeCompletedFuture {
            try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
          }
        }
      try await channel.executeThenClose { inbound, outbound in
        try await outbound.write(ByteBuffer(string: head + fields + "\r\n"))
        var answers = inbound.makeAsyncIterator()
        _ = try await answers.next()
        try await body(process)
      }
    }
  }

  @Test(arguments: ["api", "worker", "ledger"]) func signalDuringTheStartEndsARoleInOrder(role: String) async throws {
    try await withDirectory("starting") { directory in
      let process = try ChildProcess(
        ["role", role], name: role,
        environment: [
          "FANFARE_KAFKA_BOOTSTRAP_SERVERS_FILE": directory.appending(path: "nothing").path,
          "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo",
        ], program: ChildProcess.workshop, directory: directory)
      defer { process.destroy() }
      try await eventually("the role to wait for its broker") { process.log.contains("Waiting for a file") }
      process.signal(SIGTERM)
      let status = try await process.exitStatus()
      #expect(status == 0)
      #expect(process.log.contains("Stopped before it had started"))
    }
  }

  /// The body of a caller that was admitted is waited for, but not against the operator's will.
  @Test func secondSignalEndsARoleAtOnce() async throws {
    let credentials = "Authorization: Basic \(Data("alice:alice".utf8).base64EncodedString())\r\n"
    try await withUnfinishedRequest(credentials + "Expect: 100-continue\r\n") { process in
      process.signal(SIGTERM)
      // Signals within a second count as one. This line is logged after some seconds.
      try await eventually("the role to say what it waits for") { process.log.contains("Still stopping") }
      process.signal(SIGTERM)
      let status = try await process.exitStatus()
      #expect(status == 143)
      let log = process.log
      #expect(log.contains("Stopping"))
      #expect(log.contains("listener of api"), "what is waited for is named")
      #expect(log.contains("Ended by a second signal"))
    }
  }

  @Test func unfinishedBodyOfAStrangerDoesNotDelayTheEnd() async throws {
    try await withUnfinishedRequest("") { process in
      // The time limit is shorter than that of a body.
      process.signal(SIGTERM)
      let status = try await process.exitStatus(within: .seconds(15))
      #expect(status == 0)
      #expect(process.log.contains("Stopped"))
    }
  }
}
