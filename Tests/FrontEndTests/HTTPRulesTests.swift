import FanfareCore
import Support
import Testing

@testable import FrontEnd

/// What HTTP demands of a server, and what it allows a server to refuse, byte by byte.
@Suite(.timeLimit(.minutes(2))) struct HTTPRulesTests {
  private let authorization = "Authorization: \(Harness.basic("alice", "alice"))"
  private let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#

  private func code(_ answer: (head: String, body: String)) throws -> String? {
    try JSON(answer.body.utf8)["code"]?.text
  }

  private func exchange(_ text: String, _ app: Harness) async throws -> [(head: String, body: String)] {
    RawConnection.split(try await RawConnection.exchange(text, port: app.port))
  }

  @Test func requestNeedsExactlyOneHost() async throws {
    try await Harness.run { app in
      for fields in ["", "Host: x\r\nHost: x\r\n", "Host: x\r\nhost: y\r\n"] {
        // A second request on the connection is not carried out.
        let answers = try await exchange(
          "GET /openapi.json HTTP/1.1\r\n\(fields)X-Request-Id: r-1\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", app)
        #expect(answers.count == 1)
        let answer = try #require(answers.first)
        #expect(answer.head.hasPrefix("HTTP/1.1 400"), "\(fields)")
        #expect(answer.head.lowercased().contains("\r\nconnection: close"))
        #expect(answer.head.lowercased().contains("\r\nx-request-id: r-1"))
        #expect(try code(answer) == "malformedRequest")
      }
      #expect(try await exchange("GET / HTTP/1.0\r\n\r\n", app).first?.head.hasPrefix("HTTP/1.1 404") == true)
    }
  }

  @Test(arguments: ["gzip", "gzip, chunked", "chunked, chunked", "identity", "x"])
  func unknownTransferCodingIsRefusedByName(coding: String) async throws {
    try await Harness.run { app in
      let answers = try await exchange(
        "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nTransfer-Encoding: \(coding)\r\n\r\n0\r\n\r\n", app)
      // The parser refuses some of them itself.
      let answer = try #require(answers.first)
      #expect(answers.count == 1)
      #expect(answer.head.hasPrefix("HTTP/1.1 501") || answer.head.hasPrefix("HTTP/1.1 400"), "\(answer.head)")
      if coding == "gzip, chunked" {
        #expect(try code(answer) == "notImplemented")
        #expect(answer.body.contains("chunked"))
      }
    }
  }

  /// Another server on the way might see another end of the body.
  @Test(arguments: [
    "Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-Length: 5",
    "Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
  ])
  func bodyHasOneEnd(fields: String) async throws {
    try await Harness.run { app in
      let answers = try await exchange(
        "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization)\r\n\(fields)\r\n\r\n0\r\n\r\n", app)
      #expect(answers.map { $0.head.dropFirst(9).prefix(3) } == ["400"])
    }
  }

  @Test func contentCodingIsRefusedByName() async throws {
    try await Harness.run { app in
      for coding in ["gzip", "br", "identity"] {
        let reply = try await app.request(.post, "/api/sends", body: send, headers: [("Content-Encoding", coding)])
        reply.expectProblem(415, "unsupportedMediaType")
        #expect(reply.text.contains("Content-Encoding"))
        #expect(reply["Accept-Encoding"] == "identity")
      }
    }
  }

  @Test func bodyNeedsAContentType() async throws {
    try await Harness.run { app in
      for (method, path) in [
        (Harness.Method.post, "/api/sends"), (.post, "/api/sends/batch"), (.post, "/api/register"),
        (.put, "/api/register/1"), (.put, "/api/installations/1"), (.patch, "/api/installations/1"),
        (.post, "/api/notifications?pns=apns&to_tag=bob"), (.post, "/api/notifications/secure?to_tag=bob"),
      ] {
        let reply = try await app.request(method, path, body: send, type: nil)
        #expect(reply.status == 415, "\(method) \(path)")
      }
      // Without a body none is needed.
      #expect(try await app.request(.post, "/api/register?handle=ab01").status == 200)
    }
  }

  @Test func methodIsRefusedByName() async throws {
    try await Harness.run { app in
      for path in ["/api/sends/batch", "/api/notifications", "/api/notifications/secure", "/api/register"] {
        let reply = try await app.request(.get, path)
        reply.expectProblem(405, "methodNotAllowed")
        #expect(reply["Allow"] == "POST", "\(path)")
      }
      for method in ["PROPFIND", "BREW", "SEARCH"] {
        let answer = try #require(
          try await exchange("\(method) /api/sends HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", app).first)
        #expect(answer.head.hasPrefix("HTTP/1.1 501"), "\(answer.head)")
        #expect(try code(answer) == "notImplemented")
      }
      #expect(try await app.request(.options, "/api/sends").status == 405)
    }
  }

  @Test(arguments: [#"\ud800"#, #"\udc00"#, #"a\ud83dx"#, #"\ud83d\n\ude00"#, #"\ud83d\ud83d\ude00"#, #"\ude00\ud83d"#])
  func loneSurrogateIsRefused(text: String) async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let reply = try await app.request(
        .post, "/api/sends", body: #"{"to":{"user":"b"},"message":{"body":"\#(text)"}}"#)
      reply.expectProblem(400, "invalidField")
      #expect(reply.text.contains("message.body"))
      try await app.request(.post, "/api/sends", body: #"{"to":{"user":"b"},"native":{"apns":{"\#(text)":1}}}"#)
        .expectProblem(400, "invalidField")
      try await app.request(.post, "/api/notifications?pns=apns&to_tag=bob", body: "\"\(text)\"")
        .expectProblem(400, "malformedBody")
      #expect(sink.isEmpty)
      #expect(
        try await app.request(.post, "/api/sends", body: #"{"to":{"user":"b"},"message":{"body":"\ud83d\ude00"}}"#)
          .status
          == 202)
    }
  }

  /// A page of another site must not use the credentials that the browser adds by itself.
  @Test func foreignPagesAreRefusedWithAmbientCredentials() async throws {
    try await Harness.run({ $0.configuration.allowedOrigins = ["https://console.example.com"] }) { app in
      let own = "127.0.0.1:\(app.port)"
      for (fields, status) in [
        ([("Origin", "https://evil.example")], 403), ([("Origin", "null")], 403),
        ([("Sec-Fetch-Site", "cross-site")], 403), ([("Sec-Fetch-Site", "same-site")], 403),
        ([("Origin", "http://\(own)"), ("Sec-Fetch-Site", "cross-site")], 403),
        ([("Origin", "http://\(own)")], 202), ([("Origin", "https://\(own)"), ("Sec-Fetch-Site", "same-origin")], 202),
        ([("Sec-Fetch-Site", "none")], 202),
        ([("Origin", "https://console.example.com"), ("Sec-Fetch-Site", "cross-site")], 202),
      ] as [([(String, String)], Int)] {
        let reply = try await app.request(.post, "/api/sends", body: send, headers: fields)
        #expect(reply.status == status, "\(fields)")
        // Without ambient credentials there is nothing to misuse.
        #expect(try await app.request(.get, "/openapi.json", as: nil, headers: fields).status == 200)
        let bearer = try await app.request(
          .post, "/api/sends", as: nil, body: send, headers: fields + [("Authorization", "Bearer x")])
        #expect(bearer.status == 401)
      }
    }
  }

  /// Otherwise the other site could log the user in as somebody else, and see what the user does then.
  @Test func foreignPagesCannotLogIn() async throws {
    try await Harness.run({ $0.configuration.allowedOrigins = ["https://console.example.com"] }) { app in
      for (fields, status) in [
        ([("Origin", "https://evil.example")], 403), ([("Sec-Fetch-Site", "cross-site")], 403),
        ([("Origin", "https://evil.example"), ("Authorization", "Bearer x")], 403),
        ([("Origin", "http://127.0.0.1:\(app.port)"), ("Sec-Fetch-Site", "same-origin")], 201),
        ([("Origin", "https://console.example.com"), ("Sec-Fetch-Site", "cross-site")], 201), ([], 201),
      ] as [([(String, String)], Int)] {
        for root in ["", "/hubs/default"] {
          let reply = try await app.request(
            .post, root + "/api/session", as: nil, body: #"{"user":"opal","password":"opal"}"#, headers: fields)
          #expect(reply.status == status, "\(root) \(fields)")
        }
      }
    }
  }

  /// The parser of HTTP/1.1 lets lengths of 64 bits pass.
  @Test(arguments: ["9223372036854775807", "9223372036854775808", "18446744073709551615"])
  func bodiesOfAnyAnnouncedLengthAreRefusedAtOnce(length: String) async throws {
    try await Harness.run({ $0.configuration.bodyTimeout = .seconds(3600) }) { app in
      let head = "Host: x\r\n\(authorization)\r\nContent-Type: application/json\r\nContent-Length: \(length)\r\n"
      for path in ["/api/sends", "/api/session"] {
        let answers = try await exchange("POST \(path) HTTP/1.1\r\n\(head)\r\n{", app)
        #expect(answers.map { $0.head.dropFirst(9).prefix(3) } == ["413"], "\(path)")
      }
    }
  }

  /// Clients could otherwise take the second answer for that of their next request.
  @Test func earlyRefusalIsTheOnlyAnswer() async throws {
    try await Harness.run { app in
      let chunk = String(repeating: "x", count: 0x8000)
      let body = String(repeating: "8000\r\n\(chunk)\r\n", count: 4) + "0\r\n\r\n"
      let head = "Host: x\r\n\(authorization)\r\nContent-Type: application/json\r\n"
      let last = "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
      for request in [
        "POST /api/sends HTTP/1.1\r\n\(head)Transfer-Encoding: chunked\r\n\r\n\(body)",
        "POST /api/sends HTTP/1.1\r\n\(head)Content-Length: 131072\r\n\r\n\(String(repeating: chunk, count: 4))",
      ] {
        let answers = try await exchange(request + last, app)
        #expect(answers.map { $0.head.dropFirst(9).prefix(3) } == ["413", "404"])
      }
    }
  }
}
