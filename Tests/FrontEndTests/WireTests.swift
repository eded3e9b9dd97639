import FanfareCore
import NIOCore
import Support
import Testing

@testable import FrontEnd

/// Requests that no HTTP client sends, byte by byte.
@Suite(.timeLimit(.minutes(2))) struct WireTests {
  /// The fields of a request by alice.
  private let authorization = "Authorization: \(Harness.basic("alice", "alice"))\r\nContent-Type: application/json"
  /// The fields of a batch by alice.
  private let batch = "Authorization: \(Harness.basic("alice", "alice"))\r\nContent-Type: application/x-ndjson"
  private let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#

  /// Clients would read a body after HEAD as the beginning of the next answer.
  @Test func headIsAnsweredWithoutBodyEvenOnErrors() async throws {
    try await Harness.run { app in
      let text = try await RawConnection.exchange(
        ["/nothing", "/api/sends/1", "/api/notifications"].map { "HEAD \($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined()
          + "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", port: app.port)
      let answers = RawConnection.split(text)
      #expect(answers.map { $0.head.prefix(12) } == ["HTTP/1.1 404", "HTTP/1.1 401", "HTTP/1.1 405", "HTTP/1.1 404"])
      #expect(answers.dropLast().allSatisfy { $0.body.isEmpty })
      #expect(answers.last?.body.isEmpty == false)
      #expect(answers.allSatisfy { $0.head.contains("application/problem+json") })
    }
  }

  @Test func malformedHTTPIsAnsweredWithAProblem() async throws {
    try await Harness.run { app in
      for (request, status, code) in [
        ("nonsense\r\n\r\n", "501", "notImplemented"),
        ("GET / HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n", "400", "malformedRequest"),
        ("POST /api/sends HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400", "malformedRequest"),
        (
          "GET / HTTP/1.1\r\nHost: x\r\nX-A: \(String(repeating: "x", count: 20_000))\r\n\r\n", "431", "headersTooLarge"
        ),
        ("GET /\(String(repeating: "x", count: 40_000)) HTTP/1.1\r\nHost: x\r\n\r\n", "431", "headersTooLarge"),
      ] {
        let answer = try #require(RawConnection.split(try await RawConnection.exchange(request, port: app.port)).first)
        #expect(answer.head.hasPrefix("HTTP/1.1 \(status)"), "\(answer.head)")
        #expect(answer.head.lowercased().contains("connection: close"))
        #expect(try JSON(answer.body.utf8)["code"] == .string(code))
      }
      let chunked = try await RawConnection.exchange(
        "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        port: app.port)
      #expect(chunked.hasPrefix("HTTP/1.1 400"))
      #expect(chunked.contains("malformedRequest"))
    }
  }

  @Test func queryWithMalformedEscapeIsRefused() async throws {
    try await Harness.run { app in
      for query in ["handle=%zz", "handle=%2", "handle=%", "handle=%ff%fe", "%zz=1"] {
        let text = try await RawConnection.exchange(
          "POST /api/register?\(query) HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
          port: app.port)
        #expect(text.hasPrefix("HTTP/1.1 400"))
        #expect(text.contains("invalidParameter"))
      }
    }
  }

  @Test func expectContinueIsAnswered100() async throws {
    try await Harness.run { app in
      try await RawConnection.converse(port: app.port) { exchange in
        for _ in 0..<2 {
          let interim = try await exchange(
            "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nExpect: 100-Continue\r\n"
              + "Content-Length: \(send.utf8.count)\r\n\r\n")
          #expect(interim.head.hasPrefix("HTTP/1.1 100"))
          #expect(try await exchange(send).head.hasPrefix("HTTP/1.1 202"))
        }
      }
      // A client that does not wait gets the answer alone.
      let text = try await RawConnection.exchange(
        "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nExpect: 100-continue\r\nConnection: close\r\n"
          + "Content-Length: \(send.utf8.count)\r\n\r\n\(send)", port: app.port)
      #expect(RawConnection.split(text).map { $0.head.prefix(12) } == ["HTTP/1.1 202"])
    }
  }

  @Test func lateBodyIsAnswered408AndClosesTheConnection() async throws {
    try await Harness.run({ $0.configuration.bodyTimeout = .milliseconds(100) }) { app in
      let text = try await RawConnection.exchange(
        "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nX-Request-Id: late\r\nContent-Length: 100\r\n\r\n{\"to\"",
        port: app.port)
      #expect(text.hasPrefix("HTTP/1.1 408"))
      #expect(text.lowercased().contains("\r\nx-request-id: late\r\n"))
      #expect(text.contains("requestTimeout"))
    }
  }

  @Test func oversizedBodyIsRefusedBeforeItArrives() async throws {
    try await Harness.run { app in
      let text = try await RawConnection.exchange(
        "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nContent-Length: 9999999\r\nConnection: close\r\n\r\n{\"to\"",
        port: app.port)
      #expect(text.hasPrefix("HTTP/1.1 413"))
    }
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let post =
        "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nContent-Length: \(send.utf8.count)\r\n\r\n\(send)"
      let text = try await RawConnection.exchange(
        String(repeating: post, count: 20) + "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        port: app.port)
      let answers = RawConnection.split(text)
      #expect(answers.count == 21)
      #expect(
        try answers.dropLast().map { try JSON($0.body.utf8)["id"]?.text } == (try sink.sends().map { "\($0.id)" }))
    }
  }

  /// The parser takes a received buffer apart before anything is answered that takes a task.
  @Test func pipelinedRequestsAreLimited() async throws {
    try await Harness.run { app in
      let text = try await RawConnection.exchange(
        String(repeating: "GET /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\n\r\n", count: 5000), port: app.port
      )
      let answers = RawConnection.split(text)
      #expect((128..<5000).contains(answers.count))
      let closings = answers.map { $0.head.lowercased().contains("\r\nconnection: close") }
      #expect(closings.last == true && !closings.dropLast().contains(true))
    }
  }

  /// Otherwise a few thousand such clients would occupy all connections.
  @Test(arguments: ["GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", nil])
  func clientThatReadsNothingLosesItsConnection(request: String?) async throws {
    try await Harness.run({
      $0.configuration.writeTimeout = .milliseconds(200)
      $0.configuration.maximumConnections = 1
    }) { app in
      // Many requests, or one with a long answer.
      let lines = String(repeating: "x\n", count: 31_000)
      let requests =
        request.map { String(repeating: $0, count: 500) }
        ?? "POST /api/sends/batch HTTP/1.1\r\nHost: x\r\n\(batch)\r\n"
        + "Content-Length: \(lines.utf8.count)\r\n\r\n\(lines)"
      _ = try await RawConnection.exchange(
        requests, port: app.port,
        pausing: {
          // Accepted when the other connection is closed.
          let text = try await RawConnection.exchange(
            "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", port: app.port)
          #expect(text.hasPrefix("HTTP/1.1 404"))
        })
    }
  }

  /// Small requests are handled as a whole, others as parts.
  /// Neither overtakes the other on one connection.
  @Test func wholeAndStreamedRequestsAreAnsweredInOrder() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let head = "Host: x\r\n\(authorization)\r\n"
      let lines = String(repeating: send + "\n", count: 70 * 1024 / send.utf8.count)
      let small = "POST /api/sends HTTP/1.1\r\n\(head)Content-Length: \(send.utf8.count)\r\n\r\n\(send)"
      let large =
        "POST /api/sends/batch HTTP/1.1\r\nHost: x\r\n\(batch)\r\nContent-Length: \(lines.utf8.count)\r\n\r\n\(lines)"
      let chunks = String(send.utf8.count, radix: 16) + "\r\n\(send)\r\n0\r\n\r\n"
      let chunked = "POST /api/sends HTTP/1.1\r\n\(head)Transfer-Encoding: chunked\r\n\r\n\(chunks)"
      let missing = "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
      let requests = small + large + missing + chunked + small + large + large + chunked + missing
      // Malformed HTTP is answered after everything before it.
      let text = try await RawConnection.exchange(requests + "nonsense\r\n\r\n", port: app.port)
      let statuses = RawConnection.split(text).map { $0.head.dropFirst(9).prefix(3) }
      #expect(statuses == ["202", "200", "404", "202", "202", "200", "200", "202", "404", "501"])
      #expect(try sink.sends().count == 4 + 3 * (70 * 1024 / send.utf8.count))
    }
  }

  @Test func halfClosedClientGetsItsAnswers() async throws {
    try await Harness.run { app in
      let post =
        "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nContent-Length: \(send.utf8.count)\r\n\r\n\(send)"
      let text = try await RawConnection.exchange(post + post, port: app.port, closesItsHalf: true)
      #expect(RawConnection.split(text).map { $0.head.prefix(12) } == ["HTTP/1.1 202", "HTTP/1.1 202"])
    }
  }

  @Test(arguments: [
    "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
    "POST /nothing HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\n{}",
    "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
  ]) func nothingIsReadAfterAnUpgradeOffer(request: String)
    async throws
  {
    try await Harness.run { app in
      let (text, sent) = try await RawConnection.press(
        request + "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", port: app.port)
      let answers = RawConnection.split(text)
      #expect(answers.count == 1)
      #expect(answers.first?.head.hasPrefix("HTTP/1.1 4") == true)
      #expect(answers.first?.head.lowercased().contains("\r\nconnection: close") == true)
      // At most the buffers of two sockets, far less than can be sent in this time.
      #expect(sent < 64 * 1024 * 1024)
    }
  }

  @Test(arguments: ["close", "Close", "keep-alive, CLOSE"])
  func connectionCloseIsHonouredDespiteFurtherRequests(option: String) async throws {
    try await Harness.run { app in
      let head = "Host: x\r\n\(authorization)\r\nConnection: \(option)\r\n"
      let chunks = String(send.utf8.count, radix: 16) + "\r\n\(send)\r\n0\r\n\r\n"
      for (request, status) in [
        ("GET /nothing HTTP/1.1\r\n\(head)\r\n", "404"),
        ("POST /api/sends HTTP/1.1\r\n\(head)Transfer-Encoding: chunked\r\n\r\n\(chunks)", "202"),
      ] {
        let (text, _) = try await RawConnection.press(
          request + "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", port: app.port)
        let answers = RawConnection.split(text)
        #expect(answers.map { $0.head.dropFirst(9).prefix(3) } == [Substring(status)])
        #expect(answers.allSatisfy { $0.head.lowercased().contains("\r\nconnection: close") })
      }
    }
  }

  /// Such a client may detect the end of an answer only by the end of the connection.
  @Test func http10ConnectionIsClosedAfterOneAnswer()
    async throws
  {
    try await Harness.run({ $0.configuration.idleTimeout = .seconds(3600) }) { app in
      // Handled as parts.
      let lines = String(repeating: send + "\n", count: 70 * 1024 / send.utf8.count)
      let missing = "GET /nothing HTTP/1.0\r\n\r\n"
      for (request, statuses) in [
        (missing, ["404"]),
        ("POST /api/sends HTTP/1.0\r\n\(authorization)\r\nContent-Length: \(send.utf8.count)\r\n\r\n\(send)", ["202"]),
        (
          "POST /api/sends/batch HTTP/1.0\r\n\(batch)\r\nContent-Length: \(lines.utf8.count)\r\n\r\n\(lines)",
          ["200"]
        ),
        ("GET /nothing HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n" + missing, ["404", "404"]),
      ] {
        let answers = RawConnection.split(try await RawConnection.exchange(request, port: app.port))
        #expect(answers.map { $0.head.dropFirst(9).prefix(3) } == statuses.map { $0[...] })
        #expect(answers.last?.head.lowercased().contains("\r\nconnection: close") == true)
      }
    }
  }

  /// More than the sockets' buffers is still to be written when the client closes its half.
  @Test(arguments: ["", "Connection: close\r\n"], [31_000, 32_768])
  func halfClosedClientGetsALongAnswerCompletely(field: String, lines: Int) async throws {
    try await Harness.run { app in
      // The longer body is handled as parts.
      let body = String(repeating: lines > 32_000 ? "xx\n" : "x\n", count: lines)
      let text = try await RawConnection.exchange(
        "POST /api/sends/batch HTTP/1.1\r\nHost: x\r\n\(batch)\r\n\(field)"
          + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)",
        port: app.port, closesItsHalf: true)
      #expect(text.hasPrefix("HTTP/1.1 200"))
      // Outside of #expect, which would print ten megabytes.
      let count = text.utf8.count { $0 == UInt8(ascii: "\n") }
      let heads = RawConnection.split(String(text.prefix(2000)))[0].head.utf8.count { $0 == UInt8(ascii: "\n") } + 2
      #expect(count - heads == lines)
    }
  }

  @Test func answersHaveADate() async throws {
    try await Harness.run { app in
      let text = try await RawConnection.exchange(
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", port: app.port)
      #expect(text.lowercased().contains("\r\ndate: \(app.clock.now().httpDate.lowercased())\r\n"))
    }
  }
}
