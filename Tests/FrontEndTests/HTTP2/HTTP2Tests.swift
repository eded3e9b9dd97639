import FanfareCore
import Foundation
import ServiceLifecycle
import Support
import Testing

@testable import FrontEnd
@testable import HTTPServer

/// HTTP/2 with prior knowledge, by a client that shares no code with this project.
@Suite(.enabled(if: HTTP2Peer.isAvailable, "needs python3 with the package h2"), .timeLimit(.minutes(3)))
struct HTTP2Tests {
  /// What comes of each case of `peer.py`: the events of the connection, such as the status of a stream or the code of
  /// its reset.
  private static let expected = [
    "requests": "100 answers, all {'202'}",
    "body_in_parts": "1 202",
    "batch_larger_than_the_windows": "1 200, 18000 ids",
    "continue_after_admission": "1 100, 1 202, 3 401, 3 NO_ERROR",
    "head_has_no_body": "1 200, 0 bytes",
    "trailers_are_ignored": "1 202",
    "same_host_and_authority": "1 202, 3 400, 5 404, 7 202",
    "unknown_method": "1 501, 3 501",
    "body_without_type": "1 415, 3 415",
    "refusal_before_the_body": "1 401, 1 NO_ERROR, 3 202",
    "many_large_answers": "128 answers, 1 document",
    "upload_goes_on_after_the_answer": "1 413, 1 NO_ERROR, 3 202",
    "refusal_of_a_head_with_a_large_body": "1 501, 1 NO_ERROR, 3 202",
    "too_large_body": "1 413, 1 NO_ERROR, 3 202",

    "data_on_idle_stream": "goaway PROTOCOL_ERROR, closed",
    "headers_on_stream_0": "goaway PROTOCOL_ERROR, closed",
    "even_stream": "goaway PROTOCOL_ERROR, closed",
    // nghttp2 ignores it: it could be a late frame of a stream that was reset.
    "lower_stream": "5 404",
    "large_frame": "goaway FRAME_SIZE_ERROR, closed",
    "short_ping": "goaway FRAME_SIZE_ERROR, closed",
    "short_priority": "goaway FRAME_SIZE_ERROR, closed",
    "short_reset": "goaway FRAME_SIZE_ERROR, closed",
    "reset_of_idle_stream": "goaway PROTOCOL_ERROR, closed",
    "settings_of_odd_length": "goaway FRAME_SIZE_ERROR, closed",
    "settings_on_a_stream": "goaway PROTOCOL_ERROR, closed",
    "settings_acknowledgement_with_data": "goaway FRAME_SIZE_ERROR, closed",
    "settings_with_wrong_push": "goaway PROTOCOL_ERROR, closed",
    "settings_with_wrong_window": "goaway FLOW_CONTROL_ERROR, closed",
    "settings_with_wrong_frame_size": "goaway PROTOCOL_ERROR, closed",
    "push_promise": "goaway PROTOCOL_ERROR, closed",
    "continuation_alone": "goaway PROTOCOL_ERROR, closed",
    "frame_within_a_header_section": "goaway PROTOCOL_ERROR, closed",
    "data_after_the_end": "goaway STREAM_CLOSED, closed",
    "padding_longer_than_the_frame": "goaway PROTOCOL_ERROR, closed",
    "window_of_0": "goaway PROTOCOL_ERROR, closed",
    "window_of_0_of_a_stream": "goaway PROTOCOL_ERROR, closed",
    "window_overflow": "goaway FLOW_CONTROL_ERROR, closed",
    "window_overflow_of_a_stream": "1 FLOW_CONTROL_ERROR",
    "window_of_idle_stream": "goaway PROTOCOL_ERROR, closed",
    "broken_header_block": "goaway COMPRESSION_ERROR, closed",
    "unknown_frame": "",
    "dependency_on_itself": "goaway PROTOCOL_ERROR, closed",
    "too_many_streams": "goaway PROTOCOL_ERROR after 128 streams",
    // The parser of HTTP/1.1 refuses it.
    "wrong_preface": "HTTP/1.1 400",
    "preface_without_settings": "goaway PROTOCOL_ERROR, closed",
    "preface_byte_by_byte": "1 404",

    "ping_flood": "goaway ENHANCE_YOUR_CALM, closed",
    "settings_flood": "goaway ENHANCE_YOUR_CALM, closed",
    "priority_flood": "goaway ENHANCE_YOUR_CALM, closed",
    "window_flood": "goaway ENHANCE_YOUR_CALM, closed",
    "unknown_frame_flood": "goaway ENHANCE_YOUR_CALM, closed",
    "empty_data_flood": "goaway ENHANCE_YOUR_CALM, closed",
    "padding_flood": "goaway ENHANCE_YOUR_CALM, closed",
    "rapid_reset": "goaway ENHANCE_YOUR_CALM, closed",
    "rapid_reset_without_error": "goaway ENHANCE_YOUR_CALM, closed",
    "resets_provoked": "goaway ENHANCE_YOUR_CALM, closed",
    "malformed_requests_in_numbers": "goaway ENHANCE_YOUR_CALM, closed",
    "continuation_flood": "closed, no answer",
    "continuation_flood_with_fields": "closed, no answer",
    "header_bomb": "goaway ENHANCE_YOUR_CALM, closed",
    "header_bomb_in_trailers": "goaway ENHANCE_YOUR_CALM, closed",
    "too_large_header": "1 431, 3 404, 5 431",
  ]

  /// Requests whose stream is reset, while the next one is answered.
  private static let malformed = [
    "no_method", "no_scheme", "no_path", "empty_path", "no_authority", "two_paths", "unknown_pseudo_field",
    "pseudo_field_after_others", "upper_case_name", "connection_field", "transfer_encoding", "te_other_than_trailers",
    "two_hosts", "name_with_a_space", "value_with_a_line_break", "value_with_a_null", "length_shorter_than_the_body",
    "length_longer_than_the_body", "length_that_is_no_number", "length_beyond_63_bits", "two_lengths",
  ]

  @Test func everyCaseHasItsOutcome() async throws {
    try await Harness.run { app in
      let outcomes = try await HTTP2Peer.run(port: app.port)
      var expected = Self.expected
      for name in Self.malformed { expected[name] = "1 PROTOCOL_ERROR, 3 404" }
      for name in Set(outcomes.keys).union(expected.keys).sorted() {
        #expect(outcomes[name] == expected[name], "\(name)")
      }
      // Nothing keeps its share of the budget.
      #expect(app.frontEnd.budgets.bodies.taken == 0)
    }
  }

  /// By a client with a full HTTP/2 of its own: Huffman codes, priorities, windows that grow.
  @Test(arguments: [false, true]) func manyStreamsAreAnsweredDirectly(hasTLS: Bool) async throws {
    let sink = CountingSink()
    let certificates = try TestCertificates()
    try await Harness.run({
      $0.sink = sink
      if hasTLS {
        $0.configuration.tls = try ServerTLS(
          ServerTLS.Identity(certificates: certificates.serverPEM, key: certificates.serverKeyPEM))
      }
    }) { app in
      let body = FileManager.default.temporaryDirectory.appending(path: "fanfare-body-\(UUID().uuidString)").path
      try #"{"to":{"user":"bob"},"message":{"body":"b"}}"#.write(toFile: body, atomically: true, encoding: .utf8)
      defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: body) } }
      let report = try await HTTP2Peer.load([
        "-n", "4000", "-c", "4", "-m", "100", "-d", body, "-H", "content-type: application/json", "-H",
        "authorization: \(Harness.basic("alice", "alice"))",
        "\(hasTLS ? "https" : "http")://localhost:\(app.port)/api/sends",
      ])
      let text = try #require(report, "h2load is not installed")
      #expect(text.contains("status codes: 4000 2xx"), "\(text)")
      #expect(text.contains("Application protocol: h2"), "\(text)")
      // The first requests of a connection, until its caller is known, are those of the router.
      #expect(sink.direct >= 2000)
    }
  }

  @Test func lateBodyIsAnswered408() async throws {
    try await Harness.run({ $0.configuration.bodyTimeout = .milliseconds(100) }) { app in
      let outcome = try await HTTP2Peer.run("late_body", port: app.port)["late_body"]
      #expect(outcome == "1 408, 1 NO_ERROR, 3 202")
    }
  }

  @Test func windowsDoNotOpenBeforeAdmission() async throws {
    let authenticator = WaitingAuthenticator()
    try await Harness.run({ $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator])] }) { app in
      let outcome = try await HTTP2Peer.run("windows_before_admission", port: app.port)["windows_before_admission"]
      authenticator.decide()
      #expect(outcome == "[], goaway FLOW_CONTROL_ERROR, closed")
    }
  }

  @Test func clientThatKeepsItsWindowClosedLosesItsAnswer() async throws {
    try await Harness.run({ $0.configuration.writeTimeout = .milliseconds(200) }) { app in
      let outcome = try await HTTP2Peer.run("closed_window", port: app.port)["closed_window"]
      #expect(outcome == "1 200, 1 CANCEL")
    }
  }

  @Test func stuckAnswerDoesNotHarmTheOthers() async throws {
    try await Harness.run({ $0.configuration.writeTimeout = .milliseconds(200) }) { app in
      let outcome = try await HTTP2Peer.run("stuck_stream", port: app.port)["stuck_stream"]
      #expect(outcome == "1 200, 1 CANCEL, 3 404, 5 404")
    }
  }

  @Test func bodyOfResetRequestIsChargedWhileItIsHandled() {
    let budget = ByteBudget(limit: 100_000, largest: 100_000)
    let stream = HTTP2Stream(id: 1, budgets: ByteBudgets(bodies: budget, answers: budget))
    var handover = StreamHandover()
    let isCharged = stream.charge.add(50_000, of: .unknown)
    #expect(isCharged)
    let taken = budget.taken
    handover.keep(stream.charge.handOver(), of: stream.id)
    // The stream has ended.
    stream.endBody()
    #expect(budget.taken == taken)
    handover.release(3)
    #expect(budget.taken == taken)
    handover.release(1)
    #expect(budget.taken == 0)
  }

  @Test func clientThatReadsNothingLosesItsConnection() async throws {
    try await Harness.run({
      $0.configuration.writeTimeout = .milliseconds(200)
      $0.configuration.maximumConnections = 1
    }) { app in
      _ = try await HTTP2Peer.run("unread_answers", port: app.port) {
        // Answered when the other connection is closed; until then the new one gives way.
        var text = ""
        while text.isEmpty {
          text = try await RawConnection.exchangeUntilClosed(
            "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", port: app.port)
        }
        #expect(text.hasPrefix("HTTP/1.1 404"))
      }
    }
  }

  @Test func newConnectionMustBeUsedSoon() async throws {
    try await Harness.run({
      $0.configuration.firstRequestTimeout = .milliseconds(100)
      $0.configuration.idleTimeout = .seconds(3600)
    }) { app in
      let outcome = try await HTTP2Peer.run("silence", port: app.port)["silence"]
      #expect(outcome == "closed")
    }
  }

  @Test func idleConnectionIsClosed() async throws {
    try await Harness.run({ $0.configuration.idleTimeout = .milliseconds(100) }) { app in
      let outcome = try await HTTP2Peer.run("idleness", port: app.port)["idleness"]
      #expect(outcome == "1 404, closed")
    }
  }

  @Test func openStreamsAreAnsweredDuringShutdown() async throws {
    #expect(try await outcomeOfShutdown("shutdown") == "goaway NO_ERROR, 1 202, closed")
  }

  @Test func requestResetAtOnceDoesNotDelayShutdown() async throws {
    #expect(try await outcomeOfShutdown("reset_in_the_same_read") == "goaway NO_ERROR, closed")
  }

  @Test func clientThatKeepsItsWindowClosedDoesNotDelayShutdown() async throws {
    let outcome = try await outcomeOfShutdown("window_at_shutdown") { $0.drainTimeout = .milliseconds(100) }
    #expect(outcome == "1 200, goaway NO_ERROR, closed")
  }

  /// Shuts a front end down when a case is ready, and returns what came of the case.
  private func outcomeOfShutdown(_ name: String, configure: (inout FrontEndConfiguration) -> Void = { _ in })
    async throws -> String?
  {
    let temporary = try TemporaryRegistry()
    var configuration = FrontEndConfiguration()
    configuration.port = 0
    configure(&configuration)
    let frontEnd = try FrontEnd(
      configuration: configuration,
      hubs: [FrontEndHub(name: .default, authenticators: [try DemoAuthenticator(boundTo: configuration.host)])],
      dependencies: Harness.Setup().dependencies(over: temporary.registry), logger: TestKafka.quietLogger)
    let services = ServiceGroup(services: [frontEnd], logger: TestKafka.quietLogger)
    return try await withThrowingTaskGroup { group in
      group.addTask { try await services.run() }
      let outcome = try await HTTP2Peer.run(name, port: try await frontEnd.boundPort()) {
        await services.triggerGracefulShutdown()
      }
      try await group.waitForAll()
      return outcome[name]
    }
  }
}

/// An authenticator that decides when it is told to, and admits nobody.
private final class WaitingAuthenticator: Authenticator {
  private let decision = AsyncStream<Never>.makeStream()

  let challenge = BasicCredentials.challenge

  func authenticate(_ credentials: Credentials, hub: HubName, from origin: LoginOrigin) async throws -> Principal? {
    for await _ in decision.stream {}
    return nil
  }

  func decide() { decision.continuation.finish() }
}
