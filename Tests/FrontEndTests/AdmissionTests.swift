import FanfareCore
import Support
import Testing

@testable import FrontEnd
@testable import HTTPServer

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

  /// The bytes of `batch`.
  private let size = 100 * 1024

  /// The body of a large batch.
  private var batch: String {
    let line = send + String(repeating: " ", count: 1023 - send.utf8.count) + "\n"
    return String(repeating: line, count: 100)
  }

  /// The head of a request with a large batch. `fields` end with a line feed.
  private func head(_ fields: String = "") -> String {
    "POST /api/sends/batch HTTP/1.1\r\nHost: x\r\n\(authorization)\r\nContent-Type: application/x-ndjson\r\n"
      + "\(fields)Connection: close\r\nContent-Length: \(size)\r\n\r\n"
  }

  /// Large bodies of one network must not keep out those of others.
  @Test func networkHasAShareOfTheBudget() async throws {
    try await Harness.run({
      $0.configuration.maximumBatchSize = size
      $0.configuration.maximumBodyBytesInMemory = 4 * size
      $0.configuration.proxies = try #require(TrustedProxies(["127.0.0.1"]))
    }) { app in
      func head(from client: String) -> String { self.head("X-Forwarded-For: \(client)\r\n") }
      let unfinished = head(from: "203.0.113.9") + batch.dropLast(10)
      try await RawConnection.holding([unfinished, unfinished], port: app.port) {
        while app.frontEnd.budgets.bodies.taken < 2 * (size - 10 - 4096) { await Task.yield() }
        let same = try await RawConnection.exchange(head(from: "203.0.113.9") + batch, port: app.port)
        #expect(same.hasPrefix("HTTP/1.1 503"))
        let other = try await RawConnection.exchange(head(from: "203.0.113.10") + batch, port: app.port)
        #expect(other.hasPrefix("HTTP/1.1 200"))
      }
    }
  }

  @Test func budgetIsSharedAmongNetworks() throws {
    let budget = ByteBudget(limit: 100, largest: 10)
    let networks = try (1...3).map { try #require(ClientAddress("203.0.113.\($0)")) }
    func fill(_ network: ClientAddress) -> Int {
      var count = 0
      while budget.take(1, of: network) { count += 1 }
      return count
    }
    // Each takes half of what the others have left.
    #expect(networks.map(fill) == [50, 25, 12])
    #expect(budget.taken == 87)
    budget.release(50, of: networks[0])
    #expect(fill(networks[1]) == 19)
    budget.release(44, of: networks[1])
    budget.release(12, of: networks[2])
    #expect(budget.taken == 0)
    // The largest body fits even if it is the whole budget.
    let small = ByteBudget(limit: 10, largest: 10)
    #expect(small.take(10, of: networks[0]))
    #expect(!small.take(1, of: networks[1]))
  }

  @Test func bodiesShareABudget() async throws {
    let body = batch
    let head = head()
    try await Harness.run({
      $0.configuration.maximumBodySize = 64 * 1024
      $0.configuration.maximumBatchSize = 200 * 1024
      $0.configuration.maximumBodyBytesInMemory = 250 * 1024
    }) { app in
      // Two callers have sent nearly all of their bodies; a third finds too little left.
      try await RawConnection.holding(Array(repeating: head + body.dropLast(10), count: 2), port: app.port) {
        // The first 4 KiB of each are free.
        while app.frontEnd.budgets.bodies.taken < 2 * (size - 10 - 4096) { await Task.yield() }
        let text = try await RawConnection.exchange(head + body, port: app.port)
        #expect(text.hasPrefix("HTTP/1.1 503"))
        #expect(text.contains("overloaded"))
        // Small requests and strangers are not affected.
        #expect(try await app.request(.post, "/api/sends", body: send).status == 202)
      }
      // What was held is released.
      while app.frontEnd.budgets.bodies.taken > 0 { await Task.yield() }
      let text = try await RawConnection.exchange(head + body, port: app.port)
      #expect(text.hasPrefix("HTTP/1.1 200"))
    }
  }
}
