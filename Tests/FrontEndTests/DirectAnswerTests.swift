import FanfareCore
import Foundation
import RDKafka
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// Requests that are answered without the router get the answer that the router would give.
@Suite(.timeLimit(.minutes(3))) struct DirectAnswerTests {
  private static let cases = 3000

  private func configure(_ setup: inout Harness.Setup, sink: any SendSink, answersDirectly: Bool) throws {
    var tight = QuotaLimits.none
    tight.sendsPerSecond = 1
    tight.sendBurst = 40
    tight.openBroadcasts = 1
    let quotas = QuotaPolicy(everyone: .none, exceptions: ["tight": tight])
    setup.hubs = [
      FrontEndHub(name: .default, authenticators: [Harness.authenticator], quotas: quotas),
      FrontEndHub(name: try #require(HubName("shop")), authenticators: [Harness.authenticator]),
    ]
    setup.sink = sink
    setup.configuration.answersDirectly = answersDirectly
  }

  /// The identifiers, which are random, are replaced by a word.
  private func masked(_ text: String) -> String {
    text.replacing(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/, with: "ID")
  }

  /// The answers on a connection, without what differs between any two answers.
  private func normal(_ text: String) -> [String] {
    RawConnection.split(text).flatMap { answer in
      let lines = answer.head.split(separator: "\r\n").filter { !$0.lowercased().hasPrefix("date:") }
      let fields = lines.dropFirst().map { line in
        let colon = line.firstIndex(of: ":") ?? line.endIndex
        return line[..<colon].lowercased() + line[colon...]
      }
      return [masked(lines.first.map(String.init) ?? "")] + fields.map(masked).sorted() + [masked(answer.body)]
    }
  }

  @Test func directAnswersAreThoseOfTheRouter() async throws {
    let (direct, routed) = (CountingSink(), CountingSink())
    try await Harness.run({ try configure(&$0, sink: direct, answersDirectly: true) }) { one in
      try await Harness.run({ try configure(&$0, sink: routed, answersDirectly: false) }) { other in
        var corpus = RequestCorpus(seed: 1)
        for number in 0..<Self.cases {
          let (first, request) = corpus.next()
          async let answer = RawConnection.exchange(request, after: first, port: one.port)
          async let expected = RawConnection.exchange(request, after: first, port: other.port)
          let (left, right) = (normal(try await answer), normal(try await expected))
          try #require(left == right, "case \(number): \(String(decoding: request.prefix(2000), as: UTF8.self))")
        }
      }
    }
    try compare(direct, routed)
    // Each connection begins with a request that the router answers.
    #expect(direct.direct > Self.cases / 8)
  }

  /// HTTP/2 has the same rules; only what it cannot express is left out.
  @Test(.enabled(if: HTTP2Peer.isAvailable, "needs python3 with the package h2"))
  func answersOverHTTP2AreThoseOfTheRouter() async throws {
    struct Answer: Decodable {
      let number: Int
      let status: String?
      let fields: [[String]]
      let body: String
    }

    var corpus = RequestCorpus(seed: 2)
    let requests = (0..<1200).map { _ in corpus.next() }
    let path = FileManager.default.temporaryDirectory.appending(path: "fanfare-corpus-\(UUID().uuidString)").path
    try requests.map { Data($0.first.utf8).base64EncodedString() + " " + Data($0.request).base64EncodedString() }
      .joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: path) } }
    let (direct, routed) = (CountingSink(), CountingSink())
    var answers: [Answer] = []
    try await Harness.run({ try configure(&$0, sink: direct, answersDirectly: true) }) { app in
      let lines = try await HTTP2Peer.lines(["compare", path], port: app.port)
      #expect(lines.last == "compare: compared")
      answers = try lines.dropLast().map { try JSONDecoder().decode(Answer.self, from: Data($0.utf8)) }
    }
    #expect(answers.count > requests.count / 3)
    try await Harness.run({ try configure(&$0, sink: routed, answersDirectly: false) }) { app in
      for answer in answers {
        let (first, request) = requests[answer.number]
        let expected = normal(try await RawConnection.exchange(request, after: first, port: app.port))
        let fields = answer.fields.filter { $0[0] != "date" }.map { masked("\($0[0]): \($0[1])") }
        let given = [answer.status ?? "none"] + fields.sorted() + [masked(answer.body)]
        let status = expected.first.map { String($0.dropFirst(9).prefix(3)) } ?? "none"
        let others = expected.dropFirst().filter { $0 != "connection: close" }
        try #require(
          given == [status] + others,
          "case \(answer.number): \(String(decoding: request.prefix(2000), as: UTF8.self))")
      }
    }
    try compare(direct, routed)
    #expect(direct.direct > answers.count / 8)
  }

  /// Compares the records that two front ends have produced.
  private func compare(_ direct: CountingSink, _ routed: CountingSink) throws {
    let (left, right) = (direct.records.records, routed.records.records)
    #expect(left.count == right.count)
    // Keys that are not a user's contain the id.
    func key(_ record: ProducerRecord) -> String {
      let text = String(decoding: record.key ?? [], as: UTF8.self)
      return text.contains("username:") ? text : "ID"
    }
    func value(_ record: ProducerRecord) -> String { masked(String(decoding: record.value, as: UTF8.self)) }
    for (one, other) in zip(left, right) {
      try #require(one.topic == other.topic && key(one) == key(other) && value(one) == value(other))
    }
    #expect(routed.direct == 0)
  }
}
