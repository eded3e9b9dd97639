import FanfareCore
import Foundation
import Support
import Testing

@testable import PushServices

@Suite struct APNsRendererTests {
  private func render(_ send: SendRequest) throws -> RenderedPush { try APNsRenderer.render(send) }

  private func field(_ rendering: RenderedPush, _ name: String) -> String? {
    rendering.headers.first { $0.name == name }?.value
  }

  @Test func message() throws {
    let message = Message(title: "T", body: "B", data: ["k": "v", "a": "b"], badge: 3, sound: "default")
    let rendering = try render(Fixtures.send(message))
    #expect(
      String(decoding: rendering.body, as: UTF8.self)
        == #"{"aps":{"alert":{"title":"T","body":"B"},"badge":3,"sound":"default"},"a":"b","k":"v"}"#)
    #expect(field(rendering, "apns-push-type") == "alert")
    #expect(field(rendering, "apns-priority") == "10")
    #expect(rendering.handleOffset == nil)
  }

  @Test func priorityAndBackground() throws {
    #expect(field(try render(Fixtures.send(Message(body: "B"), priority: .normal)), "apns-priority") == "5")
    let badge = try render(Fixtures.send(Message(badge: 0)))
    #expect(field(badge, "apns-push-type") == "alert")
    let data = try render(Fixtures.send(Message(data: ["k": "v"])))
    #expect(String(decoding: data.body, as: UTF8.self) == #"{"aps":{"content-available":1},"k":"v"}"#)
    #expect(field(data, "apns-push-type") == "background")
    #expect(field(data, "apns-priority") == "5")
  }

  @Test(arguments: Fixtures.hostileTexts) func hostileTextArrivesUnchanged(text: String) throws {
    let message = Message(title: text, body: text + text, data: ["key" + text: text], sound: text)
    let parsed = try Fixtures.object(try render(Fixtures.send(message)).body)
    #expect(member(parsed, "aps", "alert", "title") as? String == text)
    #expect(member(parsed, "aps", "alert", "body") as? String == text + text)
    #expect(member(parsed, "aps", "sound") as? String == text)
    #expect(parsed["key" + text] as? String == text)
  }

  /// Native payload, push type, priority.
  @Test(arguments: [
    (#"{"aps":{"alert":"From U: M"},"inAppMessage":"From U: M"}"#, "alert", "10"),
    (#"{"aps":{"content-available":1},"secureId":"x"}"#, "background", "5"),
    (#" { "aps" : { "content-available" : 1 , "thread-id":"t" } } "#, "background", "5"),
    (#"{"aps":{"content-available":1,"sound":"x"}}"#, "alert", "10"),
    (#"{"aps":{"content-available":1,"badge":0}}"#, "alert", "10"),
    (#"{"aps":{"content-available":1,"alert":{"body":"b"}}}"#, "alert", "10"),
    (#"{"aps":{"content-available":0}}"#, "alert", "10"),
    (#"{"content-available":1,"aps":{}}"#, "alert", "10"), (#"{"x":1}"#, "alert", "10"),
    // As devices read it.
    (#"{"aps":{"content-available":true}}"#, "background", "5"),
    (#"{"aps":{"content-available":"1"}}"#, "background", "5"),
    (#"{"aps":{"content-available":1.0,"alert":null,"badge":null,"sound":null}}"#, "background", "5"),
    (#"{"aps":{"content-available":false}}"#, "alert", "10"), (#"{"aps":{"content-available":[1]}}"#, "alert", "10"),
    (#"{"aps":{"content-available":true,"alert":{}}}"#, "alert", "10"),
  ])
  func nativePayload(json: String, type: String, priority: String) throws {
    let rendering = try render(Fixtures.send(Content.of(message: Message(body: "other"), apns: Array(json.utf8))))
    #expect(rendering.body == Array(json.utf8))
    #expect(field(rendering, "apns-push-type") == type)
    #expect(field(rendering, "apns-priority") == priority)
    #expect(APNsRenderer.Class(of: rendering).fields == Array(rendering.headers.prefix(2)))
  }

  @Test(arguments: ["[]", "\"x\"", "{", "", "{}x", "{\"aps\":{\"alert\":}}"]) func badNativePayload(json: String) {
    #expect(throws: PushOutcome(.rejected, reason: "BadPayload")) {
      try render(Fixtures.send(Content.of(apns: Array(json.utf8))))
    }
  }

  @Test func refusals() {
    #expect(throws: PushOutcome(.rejected, reason: "ReservedDataKey")) {
      try render(Fixtures.send(Message(body: "b", data: ["aps": "x"])))
    }
    #expect(throws: PushOutcome(.rejected, reason: "PayloadEmpty")) { try render(Fixtures.send(Message())) }
    #expect(throws: PushOutcome(.rejected, reason: "PayloadEmpty")) { try render(Fixtures.send(Content.of(wns: "x"))) }
  }

  @Test func payloadLimit() throws {
    let frame = #"{"aps":{"alert":{"body":""}}}"#.utf8.count
    #expect(try render(Fixtures.send(Message(body: String(repeating: "x", count: 4096 - frame)))).body.count == 4096)
    #expect(throws: PushOutcome(.rejected, reason: "PayloadTooLarge")) {
      try render(Fixtures.send(Message(body: String(repeating: "x", count: 4097 - frame))))
    }
    #expect(throws: PushOutcome(.rejected, reason: "PayloadTooLarge"), "the size is checked before the JSON") {
      try render(Fixtures.send(Content.of(apns: Array(repeating: UInt8(ascii: "["), count: 4097))))
    }
  }

  @Test func collapseKey() throws {
    let key = String(repeating: "é", count: 32)
    #expect(field(try render(Fixtures.send(Message(body: "b"), collapseKey: key)), "apns-collapse-id") == key)
    #expect(field(try render(Fixtures.send(Message(body: "b"), collapseKey: "")), "apns-collapse-id") == nil)
    for bad in [key + "x", "a\nb", "a\u{0}", " a", "a ", "\u{7F}"] {
      #expect(throws: PushOutcome(.rejected, reason: "BadCollapseId")) {
        try render(Fixtures.send(Message(body: "b"), collapseKey: bad))
      }
    }
  }

  @Test func headersOfTheCallerReplaceTheDerivedOnes() throws {
    let payload = Array(#"{"aps":{"alert":"A"}}"#.utf8)
    func rendering(_ headers: [String: String]) throws -> RenderedPush {
      try render(Fixtures.send(Content.of(apns: payload, headers: headers), collapseKey: "own"))
    }
    let plain = try rendering(["x-wns-tag": "t"])
    #expect(plain.headers.map(\.name) == ["apns-push-type", "apns-priority", "apns-collapse-id"])
    #expect(plain.keptUntil == nil)
    let changed = try rendering(["apns-priority": "5", "apns-collapse-id": "theirs", "apns-expiration": "0"])
    #expect(changed.headers.map(\.value) == ["alert", "5", "theirs"])
    #expect(changed.keptUntil == UnixTime(milliseconds: 0))
    #expect(field(try rendering(["apns-push-type": "background"]), "apns-priority") == "5")
    #expect(try rendering(["apns-expiration": "2026-12-01T08:00:00Z"]).keptUntil == UnixTime("2026-12-01T08:00:00Z"))
    let lowest = try rendering(["apns-priority": "1"])
    #expect(lowest.headers.map(\.value) == ["alert", "1", "own"])
    #expect(APNsRenderer.Class(of: lowest) == .alertLow)
    let silent = try rendering(["apns-priority": "1", "apns-push-type": "background"])
    #expect(field(silent, "apns-priority") == "5", "APNs takes no other")
    for bad in ["apns-push-type", "apns-priority", "apns-expiration"] {
      #expect(throws: PushOutcome(.rejected, reason: "BadHeader")) { try rendering([bad: "x"]) }
    }
  }

  @Test func everyClassIsRecognised() {
    for pushClass in APNsRenderer.Class.allCases {
      #expect(APNsRenderer.Class(of: RenderedPush(headers: pushClass.fields, body: [])) == pushClass)
    }
  }
}
