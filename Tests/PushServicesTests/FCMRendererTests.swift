import FanfareCore
import Foundation
import Support
import Testing

@testable import PushServices

@Suite struct FCMRendererTests {
  /// The `message` of the request for one device, parsed.
  static func message(_ send: SendRequest, token: String = "T", timeToLive: Int64 = 60) throws -> [String: Any] {
    let body = try complete(send, token: token, timeToLive: timeToLive)
    let parsed = try Fixtures.object(body)
    #expect(parsed.keys.allSatisfy { ["message", "validate_only"].contains($0) })
    return try #require(parsed["message"] as? [String: Any])
  }

  static func body(_ send: SendRequest, timeToLive: Int64 = 60) throws -> String {
    String(decoding: try complete(send, token: "T", timeToLive: timeToLive), as: UTF8.self)
  }

  /// The request body of a push that expires in a minute, with the time to live checked.
  private static func complete(_ send: SendRequest, token: String, timeToLive: Int64) throws -> [UInt8] {
    FCMBody.complete(
      try FCMRenderer.render(send), id: Fixtures.pushID, token: token, expiresAt: Fixtures.now + .seconds(60),
      timeToLive: timeToLive)
  }

  /// The parts for Apple devices and browsers that are added to a message without a notification, for a push that
  /// expires in a minute.
  private static func backgroundLifetime(collapseID: String = "") -> String {
    #""apns":{"headers":{"apns-priority":"5","apns-push-type":"background","apns-expiration":"1795248060"\#(collapseID)},"#
      + #""payload":{"aps":{"content-available":1}}},"webpush":{"headers":{"TTL":"60"}}"#
  }
  private static let id = #""pushId":"11112222-3333-8444-8555-666677778888""#

  @Test func message() throws {
    let message = Message(title: "T", body: "B", data: ["k": "v", "a": "b"], badge: 3, sound: "default")
    #expect(
      try Self.body(Fixtures.send(message, collapseKey: "score"))
        == #"{"message":{"notification":{"title":"T","body":"B"},"data":{"a":"b","k":"v",\#(Self.id)},"token":"T","#
        + #""apns":{"headers":{"apns-expiration":"1795248060","apns-collapse-id":"score"},"#
        + #""payload":{"aps":{"badge":3,"sound":"default"}}},"webpush":{"headers":{"TTL":"60"}},"#
        + #""android":{"ttl":"60s","priority":"HIGH","collapse_key":"score","#
        + #""notification":{"tag":"score","notification_count":3,"sound":"default"}}}}"#
    )
  }

  /// Android replaces what it shows by the tag, Apple devices by the collapse id; `collapse_key` only replaces what was
  /// not delivered yet.
  @Test(arguments: ["match7", "match-7", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "zoë"])
  func collapseKeyReplacesOnAllDevices(key: String) throws {
    for content in [
      Content(message: Message(body: "b")), Content.of(fcm: Array(#"{"notification":{"body":"b"}}"#.utf8)),
    ] {
      let message = try Self.message(Fixtures.send(content, collapseKey: key))
      #expect(member(message, "android", "collapse_key") as? String == key)
      #expect(member(message, "android", "notification", "tag") as? String == key)
      #expect(member(message, "apns", "headers", "apns-collapse-id") as? String == key)
    }
    let data = try Self.message(Fixtures.send(Message(data: ["k": "v"]), collapseKey: key))
    #expect(member(data, "android", "notification") == nil, "a tag alone would show an empty notification")
    #expect(member(data, "android", "collapse_key") as? String == key)
  }

  @Test func collapseKeyThatNoHeaderCanHaveIsForAndroidAlone() throws {
    let message = try Self.message(Fixtures.send(Message(body: "b"), collapseKey: "a\nb"))
    #expect(member(message, "android", "notification", "tag") as? String == "a\nb")
    #expect(member(message, "apns", "headers", "apns-collapse-id") == nil)
  }

  @Test(arguments: [
    Message(badge: 0), Message(badge: 5), Message(sound: "default"), Message(data: ["k": "v"], badge: 0),
  ])
  func androidShowsNoEmptyNotification(message: Message) throws {
    #expect(member(try Self.message(Fixtures.send(message, collapseKey: "k")), "android", "notification") == nil)
  }

  @Test func badgeOfZeroIsNoCount() throws {
    let message = try Self.message(Fixtures.send(Message(body: "b", badge: 0, sound: "s")))
    #expect(member(message, "android", "notification") as? [String: String] == ["sound": "s"])
    #expect(member(message, "apns", "payload", "aps", "badge") as? Int == 0)
  }

  @Test(arguments: [
    Content(message: Message(body: "b")), Content.of(fcm: Array(#"{"notification":{"body":"b"}}"#.utf8)),
    Content.of(fcm: Array(#"{"notification":{"body":"b"},"apns":{"payload":{"aps":{"badge":1}}}}"#.utf8)),
  ])
  func normalPriorityAppliesToAppleDevices(content: Content) throws {
    let path = ["apns", "headers", "apns-priority"]
    let normal = try Self.message(Fixtures.send(content, priority: .normal)) as Any?
    #expect(path.reduce(normal) { member($0, $1) } as? String == "5")
    let high = try Self.message(Fixtures.send(content)) as Any?
    #expect(path.reduce(high) { member($0, $1) } == nil)
  }

  /// For Apple a badge or a sound is visible, as in a push through APNs directly.
  @Test func badgeOrSoundAloneIsNoBackgroundPush() throws {
    for content in [Message(data: ["k": "v"], badge: 0), Message(sound: "default")] {
      let apns = try Self.message(Fixtures.send(content))["apns"]
      #expect(member(apns, "headers") as? [String: String] == ["apns-expiration": "1795248060"])
      let aps = try #require(member(apns, "payload", "aps") as? [String: Any])
      #expect(aps.count == 1)
      #expect(aps["badge"] as? Int == content.badge)
      #expect(aps["sound"] as? String == content.sound)
    }
  }

  @Test func dataOnlyAndPriority() throws {
    #expect(
      try Self.body(Fixtures.send(Message(data: ["message": "hello"]), priority: .normal))
        == #"{"message":{"data":{"message":"hello",\#(Self.id)},"token":"T",\#(Self.backgroundLifetime()),"#
        + #""android":{"ttl":"60s","priority":"NORMAL"}}}"#)
  }

  @Test func timeToLiveStaysWithinFCMsLimits() throws {
    for (seconds, text) in [(Int64(-5), "0s"), (0, "0s"), (2_419_201, "2419200s"), (.max, "2419200s")] {
      let message = try Self.message(Fixtures.send(Message(body: "b")), timeToLive: seconds)
      #expect(member(message, "android", "ttl") as? String == text)
      #expect(member(message, "webpush", "headers", "TTL") as? String == String(text.dropLast()))
    }
  }

  /// The same payload accepted at another time is the same to FCM, so one verdict proves the other.
  @Test(arguments: [
    Content(message: Message(body: "b")),
    Content.of(fcm: Array(#"{"notification":{"body":"b"},"data":{"k":"v"}}"#.utf8)),
    Content.of(fcm: Array(#"{"priority":"high","data":{"k":"v"}}"#.utf8)),
  ])
  func renderingDoesNotDependOnTheTime(content: Content) throws {
    let later = SendRequest(
      id: Fixtures.sendID, acceptedAt: Fixtures.now + .seconds(5), audience: .user("bob"), content: content,
      timeToLive: 7)
    #expect(try FCMRenderer.render(later).body == FCMRenderer.render(Fixtures.send(content)).body)
  }

  @Test(arguments: Fixtures.hostileTexts) func hostileTextArrivesUnchanged(text: String) throws {
    let content = Message(title: text, body: text, data: ["key" + text: text], sound: text)
    let message = try Self.message(Fixtures.send(content, collapseKey: "c" + text), token: "t\"\\" + text)
    #expect(member(message, "notification", "title") as? String == text)
    #expect(member(message, "notification", "body") as? String == text)
    #expect(member(message, "data", "key" + text) as? String == text)
    #expect(member(message, "android", "notification", "sound") as? String == text)
    #expect(member(message, "android", "collapse_key") as? String == "c" + text)
    #expect(message["token"] as? String == "t\"\\" + text)
  }

  @Test(arguments: ["from", "message_type", "google.x", "gcm.notification.title", "pushId"]) func reservedKeys(
    key: String
  ) {
    let bodies = [
      "{\"data\":{\"\(key)\":\"v\"}}", "{\"data\":{\"\(key)\":1}}", "{\"android\":{\"data\":{\"\(key)\":\"v\"}}}",
      "{\"webpush\":{\"data\":{\"\(key)\":\"v\"}}}",
    ]
    for content in [Content(message: Message(data: [key: "v"]))] + bodies.map({ Content.of(fcm: Array($0.utf8)) }) {
      #expect(throws: PushOutcome(.rejected, reason: "ReservedDataKey")) {
        try FCMRenderer.render(Fixtures.send(content))
      }
    }
  }

  @Test func payloadLimit() throws {
    // 4096 bytes of keys and values, 42 of them for the push's id.
    func text(_ count: Int) -> String { String(repeating: "\"", count: count) }
    let most = 4096 - 42
    for message in [
      Message(body: text(most - 4)), Message(title: text(25), body: text(most - 34)),
      Message(data: ["k": text(most - 1)]),
    ] {
      #expect(try !FCMRenderer.render(Fixtures.send(message)).body.isEmpty)
    }
    for content in [
      Content(message: Message(body: text(most - 3))), Content(message: Message(title: text(25), body: text(4025))),
      Content(message: Message(data: ["k": text(most)])),
      Content.of(fcm: Array(#"{"data":{"k":"\#(String(repeating: "x", count: 4096))"}}"#.utf8)),
      Content.of(fcm: Array(#"{"android":{"data":{"k":"\#(String(repeating: "x", count: 4096))"}}}"#.utf8)),
      Content.of(fcm: Array(#"{"data":{"k":7,"l":"\#(String(repeating: "x", count: 4096))"}}"#.utf8)),
    ] {
      #expect(throws: PushOutcome(.rejected, reason: "PayloadTooLarge")) {
        try FCMRenderer.render(Fixtures.send(content))
      }
    }
  }

  /// A v1 message and the whole request made of it, for a send with the collapse key `c`.
  @Test(arguments: [
    (
      #"{"notification":{"title":"t"},"apns":{"headers":{"apns-priority":"5"}}}"#,
      #"{"notification":{"title":"t"},"data":{ID},"token":"T","apns":{"headers":{"apns-priority":"5",APNS}},WEB,"android":{"ttl":"60s","notification":{"tag":"c"},COMMON}}"#
    ),
    (
      #"{"android":{"priority":"normal","collapseKey":"own","notification":{"icon":"i"}},"data":{"k":"v"}}"#,
      #"{"data":{"k":"v",ID},"token":"T",LIFE,"android":{"ttl":"60s","priority":"normal","collapseKey":"own","notification":{"icon":"i","tag":"c"}}}"#
    ),
    (
      #"{"notification":{"title":"t"},"android":{"ttl":"5s"},"webpush":{"x":[1,2]}}"#,
      #"{"notification":{"title":"t"},"data":{ID},"token":"T","apns":{"headers":{APNS}},"webpush":{"headers":{"TTL":"60"},"x":[1,2]},"android":{"ttl":"5s","notification":{"tag":"c"},COMMON}}"#
    ),
    // Its own times, where they are shorter.
    (
      #"{"notification":{"title":"t"},"android":{"ttl":"3.5s","notification":{"tag":"own"}},"apns":{"headers":{"APNS-Expiration":"1795248010","apns-collapse-id":"own"},"payload":{"aps":{"badge":1}}},"webpush":{"headers":{"ttl":"30","Urgency":"high"}}}"#,
      #"{"notification":{"title":"t"},"data":{ID},"token":"T","apns":{"headers":{"apns-collapse-id":"own","apns-expiration":"1795248010"},"payload":{"aps":{"badge":1}}},"webpush":{"headers":{"Urgency":"high","TTL":"30"}},"android":{"ttl":"3s","notification":{"tag":"own"},COMMON}}"#
    ),
    (
      #"{"data":{"k":"v"},"android":{"ttl":"2419200s"},"apns":{"headers":{"apns-expiration":"1999999999"}},"webpush":{"headers":{"TTL":"2419200"}}}"#,
      #"{"data":{"k":"v",ID},"token":"T","apns":{"headers":{APNS}},WEB,"android":{"ttl":"60s",COMMON}}"#
    ),
    (
      #"{"data":{"k":"v"},"apns":{"headers":{"apns-expiration":"0"}}}"#,
      #"{"data":{"k":"v",ID},"token":"T","apns":{"headers":{"apns-expiration":"0","apns-collapse-id":"c"}},WEB,"android":{"ttl":"60s",COMMON}}"#
    ),
    (
      #"{"android_v2":{"background_sync":{}}}"#,
      #"{"data":{ID},"token":"T",LIFE,"android_v2":{"ttl":"60s","background_sync":{},"collapse_key":"c"}}"#
    ),
    (
      #"{"androidV2":{"ttl":"9s","collapseKey":"own","data":{"a":"b"},"remoteNotification":{"mutable_content":true,"notification":{"title":"t"}}}}"#,
      #"{"data":{ID},"token":"T",LIFE,"android_v2":{"ttl":"9s","collapseKey":"own","remote_notification":{"mutable_content":true,"notification":{"title":"t","tag":"c"}},"data":{"a":"b",ID}}}"#
    ),
    (
      #"{"message":{"notification":{"title":"t"}},"validate_only":null}"#,
      #"{"notification":{"title":"t"},"data":{ID},"token":"T","apns":{"headers":{APNS}},WEB,"android":{"ttl":"60s","notification":{"tag":"c"},COMMON}}"#
    ),
    // Data for one kind of device replaces the message's, unless it is empty.
    (
      #"{"data":{"k":"v"},"android":{"ttl":"5s","data":{"a":"b"}},"webpush":{"data":{"w":"x"},"y":1},"apns":{}}"#,
      #"{"data":{"k":"v",ID},"token":"T","apns":{"headers":{APNS}},"webpush":{"headers":{"TTL":"60"},"y":1,"data":{"w":"x",ID}},"android":{"ttl":"5s","data":{"a":"b",ID},COMMON}}"#
    ),
    (
      #"{"data":{"k":"v"},"android":{"ttl":"5s","data":{}},"webpush":null,"apns":{}}"#,
      #"{"data":{"k":"v",ID},"token":"T","apns":{"headers":{APNS}},WEB,"android":{"ttl":"5s",COMMON}}"#
    ),
    // An empty notification shows nothing.
    (
      #"{"notification":{},"data":{"k":"v"}}"#,
      #"{"notification":{},"data":{"k":"v",ID},"token":"T",LIFE,"android":{"ttl":"60s",COMMON}}"#
    ),
    // A member that is given twice is kept twice.
    (
      #"{"data":{"a":"1"},"android":{"ttl":"5s","data":{"x":"y"}},"data":{"b":"2"},"android":{"priority":"normal","data":{"z":"w"}}}"#,
      #"{"data":{"a":"1","b":"2",ID},"token":"T",LIFE,"android":{"ttl":"5s","priority":"normal","data":{"x":"y","z":"w",ID},"collapse_key":"c"}}"#
    ),
    // For FCM, null is the same as absent.
    (
      #"{"notification":{"title":"t"},"apns":null,"android":null,"data":null,"webpush":null,"token":null}"#,
      #"{"notification":{"title":"t"},"data":{ID},"token":"T","apns":{"headers":{APNS}},WEB,"android":{"ttl":"60s","notification":{"tag":"c"},COMMON}}"#
    ),
    (
      #"{"data":{"k":"v"},"apns":null,"notification":null,"android_v2":null,"android":{"ttl":null,"priority":null,"data":null,"notification":null}}"#,
      #"{"data":{"k":"v",ID},"token":"T",LIFE,"android":{"ttl":"60s",COMMON}}"#
    ),
    (
      #"{"notification":{"title":null},"data":{"k":"v"},"webpush":{"headers":{"TTL":null}}}"#,
      #"{"notification":{"title":null},"data":{"k":"v",ID},"token":"T",LIFE,"android":{"ttl":"60s",COMMON}}"#
    ),
    (#"{"data":{}}"#, ""), ("{}", ""), (#"{"apns":null}"#, ""),
  ])
  func nativeMessage(native: String, expected: String) throws {
    let send = Fixtures.send(Content.of(fcm: Array(native.utf8)), collapseKey: "c")
    guard !expected.isEmpty else {
      #expect(throws: PushOutcome(.rejected, reason: "PayloadEmpty")) { try FCMRenderer.render(send) }
      return
    }
    let collapseID = #","apns-collapse-id":"c""#
    var message = expected
    for (name, text) in [
      ("ID", Self.id), ("LIFE", Self.backgroundLifetime(collapseID: collapseID)),
      ("APNS}", #""apns-expiration":"1795248060"\#(collapseID)}"#), ("WEB", #""webpush":{"headers":{"TTL":"60"}}"#),
      ("COMMON", #""priority":"HIGH","collapse_key":"c""#),
    ] {
      message = message.replacingOccurrences(of: name, with: text)
    }
    #expect(try Self.body(send) == #"{"message":"# + message + "}")
  }

  @Test(arguments: [
    #"{"token":"x","data":{"k":"v"}}"#, #"{"fid":"x","android":{}}"#, #"{"topic":"x","notification":{}}"#,
    #"{"condition":"x"}"#,
    #"{"to\u006ben":"x"}"#, #"{"to":"x","data":{"k":"v"}}"#, #"{"registration_ids":["x"],"data":{"k":"v"}}"#,
    #"{"condition":"x","data":{"k":7}}"#, #"{"message":{"token":"x","data":{"k":"v"}}}"#,
  ])
  func messageWithTargetIsRefused(native: String) {
    #expect(throws: PushOutcome(.rejected, reason: "TargetInPayload")) {
      try FCMRenderer.render(Fixtures.send(Content.of(fcm: Array(native.utf8))))
    }
  }

  @Test(arguments: [
    "[]", "7", "{", "", "{}}", #"{"data":"x"}"#, #"{"android":7}"#, #"{"notification":[]}"#,
    #"{"android_v2":{},"android":{"ttl":"1s"}}"#,
    #"{"data":{"k":1},"android":{}}"#, #"{"priority":"urgent","data":{}}"#, #"{"time_to_live":"x","data":{}}"#,
    #"{"notification":{"body_loc_args":"x"}}"#, #"{"notification":{"badge":"x","title":"t"}}"#,
    #"{"time_to_live":-1,"data":{"k":"v"}}"#,
  ])
  func invalidMessageIsRefused(native: String) {
    #expect(throws: PushOutcome(.rejected, reason: "BadPayload")) {
      try FCMRenderer.render(Fixtures.send(Content.of(fcm: Array(native.utf8))))
    }
  }

  /// Acceptance refuses what rendering would.
  @Test(arguments: BadContent.cases) func contentRefusedAtAcceptanceIsRejectedByTheRenderer(bad: BadContent) throws {
    let send = try bad.read()
    #expect(throws: PushOutcome(.rejected, reason: bad.reason)) {
      switch bad.platform {
      case .apns: try APNsRenderer.render(send)
      case .fcm: try FCMRenderer.render(send)
      default: try WNSRenderer.render(send)
      }
    }
  }
}
