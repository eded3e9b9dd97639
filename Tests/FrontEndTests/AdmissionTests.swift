import FanfareCore
import Support
import Testing

@testable import FrontEnd

/// A body costs memory only after its caller is admitted, and never more than the budget of all connections.
@Suite(.timeLimit(.minutes(2))) struct AdmissionTests {
  private let authorization = "Authorization: \(Harness.basic("alice", "alice"))"
  private let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#

  @Test(arguments: [
    ("POST /api/sends HTTP/1.1", "", "application/json", "100", "401"),
    ("POST /api/sends HTTP/1.1", "Authorization: Basic YTpi\r\n", "application/json", "100", "401"),
    ("POST /api/nothing HTTP/1.1", "", "application/json", "100", "404"),
    ("POST /api/sends/1 HTTP/1.1", "", "application/json", "100", "405"),
    ("POST /api/sends HTTP/1.1", "Authorization: Basic ZGV2b246ZGV2b24=\r\n", "application/json", "100", "403"),
    ("POST /api/sends HTTP/1.1", "Authorization: Basic YWxpY2U6YWxpY2U=\r\n", "application/json", "70000", "413"),
    ("POST /api/sends HTTP/1.1", "Authorization: Basic YWxpY2U6YWxpY2U=\r\n", "text/plain", "100", "415"),
  ])
  func refusalComesBeforeTheBody(line: String, credentials: String, type: String, length: String, status: String)
    async throws
  {
    try await Harness.run { app in
      for expectation in ["", "Expect: 100-continue\r\n"] {
        let answer = try await RawConnection.firstAnswer(
          to:
            "\(line)\r\nHost: x\r\n\(credentials)\(expectation)Content-Type: \(type)\r\nContent-Length: \(length)\r\n\r\n",
          port: app.port)
        #expect(answer.head.dropFirst(9).prefix(3) == status, "\(expectation)")
        // The client may or may not send its body after all.
        #expect(answer.head.lowercased().contains("\r\nconnection: close") == !expectation.isEmpty)
      }
    }
  }

  @Test func bodiesShareABudget() async throws {
    let size = 100 * 1024
    let line = send + String(repeating: " ", count: 1023 - send.utf8.count) + "\n"
    let body = String(repeating: line, count: 100)
    let head =
      "POST /api/sends/batch HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nContent-Type: application/x-ndjson\r\n"
      + "Connection: close\r\nContent-Length: \(size)\r\n\r\n"
    try await Harness.run({
      $0.configuration.maximumBodySize = 64 * 1024
      $0.configuration.maximumBatchSize = 200 * 1024
      $0.configuration.maximumBodyBytesInMemory = 250 * 1024
    }) { app in
      // Two callers have sent nearly all of their bodies; a third finds too little left.
      try await RawConnection.holding(Array(repeating: head + body.dropLast(10), count: 2), port: app.port) {
        // The first 4 KiB of each are free.
        while app.frontEnd.bodies.taken < 2 * (size - 10 - 4096) { await Task.yield() }
        let text = try await RawConnection.exchange(head + body, port: app.port)
        #expect(text.hasPrefix("HTTP/1.1 503"))
        #expect(text.contains("overloaded"))
        // Small requests and strangers are not affected.
        #expect(try await app.request(.post, "/api/sends", body: send).status == 202)
      }
      // What was held is released.
      while app.frontEnd.bodies.taken > 0 { await Task.yield() }
      let text = try await RawConnection.exchange(head + body, port: app.port)
      #expect(text.hasPrefix("HTTP/1.1 200"))
    }
  }
}
