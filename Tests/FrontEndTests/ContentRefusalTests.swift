import FanfareCore
import Support
import Testing

/// Content that a push service would refuse for every device is refused when it is posted.
@Suite(.timeLimit(.minutes(2))) struct ContentRefusalTests {
  /// Those that fit into a body.
  private static let cases = BadContent.cases.filter { $0.members.utf8.count < 60_000 }

  private static func body(_ bad: BadContent, more: String = "") -> String {
    #"{"to":{"user":"bob"},\#(bad.members)\#(more)}"#
  }

  @Test func sendIsRefusedNamingTheMember() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for bad in Self.cases {
        for more in ["", #","sendAt":"\#(app.clock.now() + .seconds(60))""#] {
          try await app.request(.post, "/api/sends", body: Self.body(bad, more: more)).expectProblem(
            400, "invalidField", naming: bad.field + " ")
        }
      }
      #expect(sink.isEmpty)
    }
  }

  @Test func linesOfABatchAreRefusedOneByOne() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let good = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
      let lines = Self.cases.prefix(90).map { Self.body($0) } + [good]
      let reply = try await app.request(
        .post, "/api/sends/batch", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
      let answers = try reply.body.split(separator: UInt8(ascii: "\n")).map { try JSON($0) }
      #expect(answers.count == lines.count && answers.last?["id"] != nil)
      for (answer, bad) in zip(answers, Self.cases) {
        #expect(answer["error"]?["code"] == "invalidField")
        #expect(answer["error"]?["detail"]?.text?.hasPrefix(bad.field + " ") == true, "\(bad)")
      }
      #expect(sink.records.count == 1)
    }
  }

  @Test func whatThePlatformsOfTheSendAcceptIsAccepted() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for members in [
        #""message":{"data":{"from":"x"}},"platforms":["apns","wns"]"#, #""message":{"sound":"default"}"#,
        #""native":{"fcm":{"message":{"data":{"k":"v"}}}}"#,
        #""native":{"apns":{"aps":{"content-available":true}},"headers":{"apns-priority":"1"}}"#,
      ] {
        let reply = try await app.request(.post, "/api/sends", body: #"{"to":{"user":"bob"},\#(members)}"#)
        #expect(reply.status == 202, "\(reply.text)")
      }
      let device = #"{"to":{"device":{"platform":"apns","handle":"aa"}},"message":{"data":{"from":"x"}}}"#
      #expect(try await app.request(.post, "/api/sends", body: device).status == 202)
      #expect(sink.records.count == 5)
    }
  }

  @Test func textOfANotificationMayBeTooLong() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for platform in ["apns", "fcm", "wns"] {
        try await app.request(
          .post, "/api/notifications?pns=\(platform)&to_tag=bob",
          body: "\"\(String(repeating: "x", count: 6000))\""
        ).expectProblem(400, "invalidField", naming: "native.\(platform) must have at most")
      }
      #expect(sink.isEmpty)
    }
  }

  @Test func templatesAreRefusedForPartsWithoutExpressions() async throws {
    try await Harness.run { app in
      for (content, field) in [
        (
          #""native":{"apns":{"aps":{"alert":"$(a)"}},"headers":{"apns-priority":"7"}}"#, "native.headers.apns-priority"
        ),
        (#""native":{"fcm":{"token":"t","data":{"k":"v"}}}"#, "native.fcm.token"),
        (#""message":{"body":"$(a)","data":{"pushId":"v"}}"#, "message.data.pushId"),
      ] {
        try await app.request(
          .put, "/api/templates/goal", as: "opal",
          body: #"{"defaultLocale":"en","variants":{"en":{\#(content)}}}"#
        ).expectProblem(400, "invalidField", naming: "variants.en.\(field) ")
      }
      for (template, field) in [
        (#"{"body":"{\"aps\":{\"alert\":\"$(a)\"}}","headers":{"apns-push-type":"voip"}}"#, "headers.apns-push-type"),
        (#"{"body":"{\"a\":\"\#(String(repeating: "x", count: 4096))\"}"}"#, "body"),
      ] {
        try await app.request(
          .put, "/api/installations/phone-1",
          body: #"{"platform":"apns","handle":"aa","templates":{"n":\#(template)}}"#
        ).expectProblem(400, "invalidField", naming: "templates.n.\(field) ")
      }
    }
  }
}
