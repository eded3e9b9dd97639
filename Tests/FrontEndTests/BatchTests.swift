import FanfareCore
import RDKafka
import Support
import Testing

@Suite(.timeLimit(.minutes(2))) struct BatchTests {
  private let ndjson = "application/x-ndjson"

  private func line(_ text: String, to user: String = "bob") -> String {
    #"{"to":{"user":"\#(user)"},"message":{"body":"\#(text)"}}"#
  }

  private func answers(_ reply: Reply) throws -> [JSON] {
    #expect(reply.text.hasSuffix("\n"))
    return try reply.body.split(separator: UInt8(ascii: "\n")).map { try JSON($0) }
  }

  @Test func eachLineIsAnsweredOnItsOwnAndInOrder() async throws {
    try await Harness.runWithKafka { app, kafka, topics in
      let long = line(String(repeating: "x", count: 65536))
      let lines = [
        "\u{FEFF}" + line("1"), "nonsense", line("2", to: "carol"), "", #"{"to":{"user":"bob"}}"#, long, line("3"),
        #"{"to":{"user":"b"},"native":{"apns":{}},"platforms":["fcm"]}"#, line("4") + " \r", "[\u{FF}]", line("5"),
      ]
      // Blank lines at the end are ignored.
      for ending in ["", "\n", "\r\n\n  \n"] {
        let reply = try await app.request(
          .post, "/api/sends/batch", body: lines.joined(separator: "\n") + ending, type: ndjson,
          headers: [
            ("X-Request-Id", "batch-1"), ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
          ])
        #expect(reply.status == 200)
        #expect(reply["Content-Type"] == ndjson)
        let answers = try answers(reply)
        #expect(answers.count == lines.count)
        for (index, (status, code)) in [
          1: (400, "malformedBody"), 3: (400, "malformedBody"), 4: (400, "invalidField"), 5: (413, "tooLarge"),
          7: (422, "impossible"), 9: (400, "malformedBody"),
        ] {
          let error = answers[index]["error"]
          #expect(error?["code"] == .string(code), "line \(index)")
          #expect(error?["status"] == .number(Double(status)))
          #expect(error?["requestId"] == "batch-1")
          #expect(answers[index]["id"] == nil)
        }
        for index in [0, 2, 6, 8, 10] {
          #expect(answers[index]["id"]?.text.flatMap { SendID($0) } != nil)
          #expect(answers[index]["error"] == nil)
        }
      }
      let stored = try await kafka.sends(in: topics, count: 15)
      #expect(
        stored.filter { $0.key == "username:bob" }.map { $0.send.content.message?.body } == [
          "1", "3", "4", "5", "1", "3", "4", "5", "1", "3", "4", "5",
        ])
      #expect(stored.filter { $0.key == "username:carol" }.count == 3)
      #expect(stored.allSatisfy { $0.send.traceparent?.hasPrefix("00-4bf9") == true && $0.send.sender == "alice" })
    }
  }

  @Test func lineRefusedByKafkaFailsAlone() async throws {
    let sink = RecordingSink { record in
      String(decoding: record.key ?? [], as: UTF8.self) == "username:carol"
        ? .init(code: .queueFull, message: "full") : nil
    }
    try await Harness.run({ $0.sink = sink }) { app in
      let body = [line("1"), line("2", to: "carol"), line("3")].joined(separator: "\n")
      let reply = try await app.request(.post, "/api/sends/batch", body: body, type: ndjson)
      let answers = try answers(reply)
      let sends = try sink.sends()
      #expect(reply.status == 200)
      #expect(answers[0] == ["id": .string("\(sends[0].id)")])
      #expect(answers[1]["error"]?["code"] == "overloaded")
      #expect(answers[2] == ["id": .string("\(sends[1].id)")])
    }
  }

  @Test func emptyOversizedOrMistypedBatchIsRefusedAsAWhole() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for body in ["", "\n", " \r\n\t\n"] {
        try await app.request(.post, "/api/sends/batch", body: body, type: ndjson).expectProblem(400, "malformedBody")
      }
      for type in ["application/json", "text/plain", "application/x-ndjson;charset=utf-16"] {
        try await app.request(.post, "/api/sends/batch", body: line("1"), type: type).expectProblem(
          415, "unsupportedMediaType")
      }
      let megabyte = 1024 * 1024
      let filler = line(String(repeating: "x", count: 1000)) + "\n"
      let whole = String(repeating: filler, count: megabyte / filler.utf8.count)
      let padded = whole + String(repeating: " ", count: megabyte - whole.utf8.count)
      let reply = try await app.request(.post, "/api/sends/batch", body: padded, type: ndjson)
      #expect(try answers(reply).count == megabyte / filler.utf8.count)
      #expect(sink.records.count == megabyte / filler.utf8.count)
      try await app.request(.post, "/api/sends/batch", body: padded + " ", type: ndjson).expectProblem(413, "tooLarge")
    }
  }

  /// A batch of nonsense must not be answered with many times its size.
  @Test func errorsAreAbbreviatedAfterTheFirstHundred() async throws {
    try await Harness.run { app in
      let lines = (0..<1000).map { $0 % 10 == 0 ? line("\($0)") : "x" }
      let reply = try await app.request(.post, "/api/sends/batch", body: lines.joined(separator: "\n"), type: ndjson)
      let answers = try answers(reply)
      #expect(answers.count == lines.count)
      var refused = 0
      for (index, answer) in answers.enumerated() {
        guard index % 10 != 0 else {
          #expect(answer["id"] != nil)
          continue
        }
        refused += 1
        #expect(answer["error"]?["code"] == "malformedBody")
        #expect(answer["error"]?["status"] == 400)
        #expect((answer["error"]?["detail"] != nil) == (refused <= 100))
      }
      #expect(reply.body.count < 100 * 300 + 1000 * 60)
    }
  }

  /// Otherwise a megabyte of line feeds would be answered with hundreds of megabytes of problems.
  @Test func batchWithMoreLinesThanPossibleSendsIsRefused() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let shortest = #"{"to":{"tag":"a"},"native":{"wns":"a"}}"# + "\n"
      let most = 1024 * 1024 / shortest.utf8.count
      let reply = try await app.request(
        .post, "/api/sends/batch", body: String(repeating: shortest, count: most), type: ndjson)
      #expect(try answers(reply).count == most)
      #expect(sink.records.count == most)
      // A few short lines are answered one by one even if they are not sends.
      let short = try await app.request(.post, "/api/sends/batch", body: "x\n\n\n\ny", type: ndjson)
      #expect(try answers(short).map { $0["error"]?["code"] } == Array(repeating: "malformedBody", count: 5))
      let lines = String(repeating: "\n", count: 1024 * 1024 - 1) + "x"
      try await app.request(.post, "/api/sends/batch", body: lines, type: ndjson).expectProblem(413, "tooLarge")
    }
  }
}
