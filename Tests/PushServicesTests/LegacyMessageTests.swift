import FanfareCore
import Foundation
import Support
import Testing

@testable import PushServices

@Suite struct LegacyMessageTests {
  private func message(
    _ legacy: String, priority: Priority = .high, collapseKey: String? = nil, timeToLive: Int64 = 60
  ) throws -> [String: Any] {
    try FCMRendererTests.message(
      Fixtures.send(Content.of(fcm: Array(legacy.utf8)), priority: priority, collapseKey: collapseKey),
      timeToLive: timeToLive)
  }

  private func same(_ found: Any?, _ expected: String) throws -> Bool {
    let expected = try JSONSerialization.jsonObject(with: Data(expected.utf8), options: .fragmentsAllowed)
    return (found as? NSObject) == (expected as? NSObject)
  }

  @Test func legacyDataBecomesText() throws {
    let legacy = #"""
      {"priority":"high","data":{"s":"x","i":7,"d":1.50,"e":1e3,"t":true,"f":false,"n":null,"o":{ "a" : [1, " b " ] },"l":[ ]}}
      """#
    let data = try #require(try message(legacy)["data"] as? [String: String])
    #expect(
      data == [
        "s": "x", "i": "7", "d": "1.50", "e": "1e3", "t": "true", "f": "false", "o": #"{"a":[1," b "]}"#, "l": "[]",
        "pushId": Fixtures.pushID.description,
      ])
  }

  /// Legacy message, path in the v1 message, value there.
  @Test(arguments: [
    (#"{"data":{"message":"hello"}}"#, ["android"], #"{"ttl":"60s","priority":"HIGH"}"#),
    (#"{"priority":"normal","data":{"k":"v"}}"#, ["android", "priority"], #""NORMAL""#),
    (#"{"priority":10,"notification":{"title":"t"}}"#, ["android", "priority"], #""HIGH""#),
    (#"{"priority":5,"notification":{"title":"t"}}"#, ["apns", "headers", "apns-priority"], #""5""#),
    (#"{"priority":"high","notification":{"title":"t"}}"#, ["apns", "headers", "apns-priority"], #""10""#),
    (#"{"priority":"high","data":{"k":"v"}}"#, ["apns", "headers", "apns-priority"], #""5""#),
    (#"{"time_to_live":30,"data":{"k":"v"}}"#, ["android", "ttl"], #""30s""#),
    (#"{"time_to_live":"30","data":{"k":"v"}}"#, ["webpush", "headers", "TTL"], #""30""#),
    (#"{"time_to_live":30,"data":{"k":"v"}}"#, ["apns", "headers", "apns-expiration"], #""1795248030""#),
    (#"{"time_to_live":9999999,"data":{"k":"v"}}"#, ["android", "ttl"], #""60s""#),
    (#"{"time_to_live":9999999,"data":{"k":"v"}}"#, ["apns", "headers", "apns-expiration"], #""1795248060""#),
    (#"{"collapse_key":"c","data":{"k":"v"}}"#, ["android", "collapse_key"], #""c""#),
    (#"{"collapse_key":"c","data":{"k":"v"}}"#, ["apns", "headers", "apns-collapse-id"], #""c""#),
    (#"{"restricted_package_name":"p","data":{"k":"v"}}"#, ["android", "restricted_package_name"], #""p""#),
    (#"{"content_available":true,"data":{"k":"v"}}"#, ["apns", "payload", "aps"], #"{"content-available":1}"#),
    (#"{"mutable_content":true,"notification":{"title":"t"}}"#, ["apns", "payload", "aps"], #"{"mutable-content":1}"#),
    (
      #"{"to":null,"notification":null,"content_available":null,"apns":null,"data":{"k":7}}"#, ["android"],
      #"{"ttl":"60s","priority":"HIGH"}"#
    ),
    (#"{"delay_while_idle":true,"data":{"k":"v"}}"#, ["android"], #"{"ttl":"60s","priority":"HIGH"}"#),
    (#"{"notification":{"title":"t","body":"b","icon":"i"}}"#, ["notification"], #"{"title":"t","body":"b"}"#),
    (
      ##"{"notification":{"icon":"i","sound":"s","tag":"g","color":"#ff0000","click_action":"c","android_channel_id":"h"}}"##,
      ["android", "notification"],
      ##"{"icon":"i","sound":"s","tag":"g","color":"#ff0000","click_action":"c","channel_id":"h"}"##
    ),
    (
      #"{"notification":{"title":"t","badge":"4","sound":"s","click_action":"c"}}"#, ["apns", "payload", "aps"],
      #"{"badge":4,"sound":"s","category":"c"}"#
    ),
    (
      #"{"notification":{"body":"b","body_loc_key":"k","body_loc_args":["x","y"],"title_loc_key":"m","title_loc_args":"[\"z\"]"}}"#,
      ["android", "notification"],
      #"{"title_loc_key":"m","body_loc_key":"k","title_loc_args":["z"],"body_loc_args":["x","y"]}"#
    ),
    (
      #"{"notification":{"body":"b","body_loc_key":"k","body_loc_args":["x"],"subtitle":"u"}}"#,
      ["apns", "payload", "aps", "alert"],
      #"{"body":"b","loc-key":"k","loc-args":["x"],"subtitle":"u"}"#
    ),
  ])
  func everyField(legacy: String, path: [String], expected: String) throws {
    let found = path.reduce(try message(legacy) as Any?) { member($0, $1) }
    #expect(try same(found, expected), "\(String(describing: found))")
  }

  @Test(arguments: [
    (
      #"{"delay_while_idle":false,"data":{"message":"hello"}}"#,
      #"{"headers":{"apns-priority":"5","apns-push-type":"background","apns-expiration":"1795248060"},"payload":{"aps":{"content-available":1}}}"#
    ),
    (
      #"{"priority":"high","data":{"k":"v"},"notification":{"icon":"i"}}"#,
      #"{"headers":{"apns-priority":"5","apns-push-type":"background","apns-expiration":"1795248060"},"payload":{"aps":{"content-available":1}}}"#
    ),
    (
      #"{"content_available":true,"notification":{"badge":1}}"#,
      #"{"headers":{"apns-expiration":"1795248060"},"payload":{"aps":{"badge":1,"content-available":1}}}"#
    ),
    (
      #"{"priority":"high","notification":{"title":"t","badge":1}}"#,
      #"{"headers":{"apns-priority":"10","apns-expiration":"1795248060"},"payload":{"aps":{"badge":1}}}"#
    ),
  ])
  func messageWithoutTimeToLiveExpiresWithTheSend(legacy: String, apns: String) throws {
    let message = try message(legacy)
    #expect(try same(message["apns"], apns))
    #expect(try same(message["webpush"], #"{"headers":{"TTL":"60"}}"#))
    #expect(member(message, "android", "ttl") as? String == "60s")
  }

  /// Its own time counts from the acceptance of the send, not from each attempt, and is limited by the send, which
  /// expires after a minute.
  @Test func timeToLiveIsCountedDown() throws {
    for (remaining, text) in [(Int64(60), "30"), (40, "10"), (30, "0"), (10, "0")] {
      let message = try message(#"{"time_to_live":30,"data":{"k":"v"}}"#, timeToLive: remaining)
      #expect(member(message, "android", "ttl") as? String == text + "s")
      #expect(member(message, "webpush", "headers", "TTL") as? String == text)
      #expect(member(message, "apns", "headers", "apns-expiration") as? String == "1795248030")
    }
  }

  @Test func dryRun() throws {
    let send = Fixtures.send(Content.of(fcm: Array(#"{"dry_run":true,"data":{"k":"v"}}"#.utf8)))
    let body = Array(try FCMRendererTests.body(send).utf8)
    #expect(try Fixtures.object(body)["validate_only"] as? Bool == true)
    #expect(try FCMRenderer.render(send).isDryRun)
  }

  @Test func sendPriorityAppliesIfTheMessageHasNone() throws {
    #expect(member(try message(#"{"data":{"k":1}}"#, priority: .normal), "android", "priority") as? String == "NORMAL")
    let shown = #"{"notification":{"title":"t","icon":"i"}}"#
    #expect(member(try message(shown, priority: .normal), "apns", "headers", "apns-priority") as? String == "5")
    #expect(member(try message(shown), "apns", "headers", "apns-priority") == nil)
  }

  /// Legacy message, tag on Android, collapse key on Android, collapse id on Apple devices; the send has a key.
  @Test(arguments: [
    (#"{"priority":"high","notification":{"title":"t"}}"#, "match-7", "match-7", "match-7"),
    (#"{"notification":{"title":"t","tag":"own"}}"#, "own", "match-7", "match-7"),
    (#"{"collapse_key":"own","notification":{"title":"t"}}"#, "match-7", "own", "own"),
    (#"{"notification":{"icon":"i"}}"#, "match-7", "match-7", "match-7"),
    (#"{"notification":{"sound":"s"}}"#, nil, "match-7", "match-7"),
    (#"{"notification":{"badge":"0"}}"#, nil, "match-7", "match-7"),
    (#"{"priority":"high","data":{"k":"v"}}"#, nil, "match-7", "match-7"),
  ])
  func collapseKeyOfTheSendReplaces(legacy: String, tag: String?, key: String, id: String) throws {
    let message = try message(legacy, collapseKey: "match-7")
    #expect(member(message, "android", "notification", "tag") as? String == tag)
    #expect((member(message, "android", "notification") == nil) == (tag == nil), "a sound alone shows nothing")
    #expect(member(message, "android", "collapse_key") as? String == key)
    #expect(member(message, "apns", "headers", "apns-collapse-id") as? String == id)
  }

  @Test func collapseKeysThatAppleRefusesAreRefused() {
    let legacy = #"{"collapse_key":"\#(String(repeating: "x", count: 65))","data":{"k":"v"}}"#
    #expect(throws: PushOutcome(.rejected, reason: "BadCollapseId")) { try message(legacy) }
  }

  @Test(arguments: Fixtures.hostileTexts) func hostileTextArrivesUnchanged(text: String) throws {
    let legacy: [String: Any] = [
      "priority": "high", "data": ["k": text, "o": ["x": text]],
      "notification": ["title": text, "tag": text, "sound": text],
    ]
    let json = Array(try JSONSerialization.data(withJSONObject: legacy))
    let message = try FCMRendererTests.message(Fixtures.send(Content.of(fcm: json)))
    #expect(member(message, "data", "k") as? String == text)
    let inner = try Fixtures.object(Array((member(message, "data", "o") as? String ?? "").utf8))
    #expect(inner["x"] as? String == text)
    #expect(member(message, "notification", "title") as? String == text)
    #expect(member(message, "android", "notification", "tag") as? String == text)
    #expect(member(message, "apns", "payload", "aps", "sound") as? String == text)
  }

  @Test(arguments: [
    (#"{"data":{"k":"v"}}"#, false), (#"{"data":{"k":1}}"#, true),
    (#"{"notification":{"title":"t","image":"i"}}"#, false),
    (#"{"notification":{"icon":"i"}}"#, true), (#"{"priority":"high","data":{"k":"v"}}"#, true),
    (#"{"priority":"high","apns":{}}"#, false), (#"{"apns":null,"data":{"k":1}}"#, true),
    (#"{"message":{"data":{"k":1}}}"#, true), (#"{"message":{"data":{"k":"v"}}}"#, false),
    (#"{"priority":null,"data":{"k":"v"}}"#, false),
  ])
  func legacyFormIsRecognised(json: String, expected: Bool) throws {
    guard case .legacy = try FCMPayload(Array(json.utf8)) else {
      #expect(!expected)
      return
    }
    #expect(expected)
  }
}
