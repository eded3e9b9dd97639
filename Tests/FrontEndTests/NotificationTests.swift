import FanfareCore
import Foundation
import FoundationXML
import FrontEnd
import RDKafka
import Support
import Testing

@Suite(.timeLimit(.minutes(2))) struct NotificationTests {
  private static let hostile = [
    "hello", "", #"say "hi" & <b>bye</b> \ / ' ]]> <!-- -->"#,
    "line\nbreak\r\ntab\t\u{0}\u{1}\u{1F}\u{7F}\u{85}\u{2028}",
    "👩‍👩‍👧‍👦 🇩🇪 é e\u{301} \u{FEFF}\u{FFFD}\u{10FFFF}", "}}],\"aps\":{}", "</text><script/>", "&amp;&#13;",
    String(repeating: "é\"<", count: 280),
  ]

  /// Every text on every platform is read back from the topic with Foundation's parsers.
  @Test func textIsEscapedForEveryPlatform() async throws {
    try await Harness.runWithKafka { app, kafka, topics in
      var expected: [SendID: (pns: String, text: String)] = [:]
      for (number, message) in Self.hostile.enumerated() {
        for pns in [["apns", "gcm", "wns"], ["APNS", "fcm", "Wns"], ["apns", "GCM", "wns"]][number % 3] {
          let reply = try await app.request(
            .post, "/api/notifications?pns=\(pns)&to_tag=bob", body: try JSON.encoded(message))
          #expect(reply.status == 200)
          let id = try reply.sendID()
          #expect(reply["Location"] == "/api/sends/\(id)")
          #expect(try reply.json == ["id": .string("\(id)")])
          expected[id] = (pns.lowercased(), "From alice: \(message)")
        }
      }
      let stored = try await kafka.sends(in: topics, count: expected.count)
      for record in stored {
        let asked = expected.removeValue(forKey: record.send.id)
        let (pns, text) = try #require(asked)
        #expect(record.key == "username:bob")
        #expect(record.headers == [RecordHeader(name: "content-type", text: "application/cloudevents+json")])
        #expect(record.send.audience == .user("bob"))
        #expect(record.send.sender == "alice" && record.send.hub == .default)
        #expect(record.send.acceptedAt == app.clock.now())
        let content = record.send.content
        switch pns {
        case "apns":
          #expect(record.send.platforms == PlatformSet(.apns))
          #expect(try JSON(content.apns ?? []) == ["aps": ["alert": .string(text)], "inAppMessage": .string(text)])
          #expect(content.fcm == nil && content.wns == nil && content.message == nil)
        case "gcm", "fcm":
          #expect(record.send.platforms == PlatformSet(.fcm))
          #expect(try JSON(content.fcm ?? []) == ["data": ["message": .string(text)]])
          #expect(content.apns == nil && content.wns == nil && content.message == nil)
        default:
          #expect(record.send.platforms == PlatformSet(.wns))
          let toast = try #require(Toast(content.wns ?? ""))
          #expect(toast.path == ["toast", "visual", "binding", "text"])
          #expect(toast.template == "ToastText01" && toast.textID == "1")
          // XML 1.0 cannot represent control characters; they are dropped. All others must be parsed unchanged.
          let representable = text.unicodeScalars.filter { $0.value >= 0x20 || [9, 10, 13].contains($0.value) }
          #expect(Array(toast.text.utf8) == Array(String(String.UnicodeScalarView(representable)).utf8))
          #expect(content.apns == nil && content.fcm == nil && content.message == nil)
        }
      }
      #expect(expected.isEmpty)
    }
  }

  /// Form encoding writes a space as `+`, and apps do not escape the `+` in mail addresses.
  @Test func plusMeansTheUserWhoHasADevice() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      func register(_ user: String) async throws {
        let id = try await app.registry.issue(hub: .default, handle: nil, at: app.clock.now())
        _ = try await app.registry.complete(
          DeviceRequest(id: id, hub: .default, user: user, platform: .fcm, handle: user.percentEncoded, tags: []),
          at: app.clock.now())
      }
      func recipient(_ path: String) async throws -> (Audience?, String?) {
        let reply = try await app.request(.post, "/api/\(path)", body: #""x""#)
        #expect(reply.status == 200, "\(reply.text)")
        return (try sink.sends().last?.audience, reply["Fanfare-Recipient"])
      }
      for path in ["notifications?pns=apns&to_tag=", "notifications/secure?to_tag="] {
        #expect(try await recipient(path + "nobody+here") == (.user("nobody+here"), "nobody%2bhere"))
        #expect(try await recipient(path + "bob%20smith") == (.user("bob smith"), nil))
        #expect(try await recipient(path + "bob%2Bsmith") == (.user("bob+smith"), nil))
      }
      try await register("bob smith")
      for path in ["notifications?pns=apns&to_tag=", "notifications/secure?to_tag="] {
        #expect(try await recipient(path + "bob+smith") == (.user("bob smith"), "bob%20smith"))
        #expect(try await recipient(path + "bob%2Bsmith") == (.user("bob+smith"), nil))
      }
      try await register("bob+smith")
      for path in ["notifications?pns=apns&to_tag=", "notifications/secure?to_tag="] {
        #expect(try await recipient(path + "bob+smith") == (.user("bob+smith"), "bob%2bsmith"))
      }
    }
  }

  @Test func userNamesOfAnyScriptAreAccepted() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let names = ["bob", "René Müller", "a+b@example.com", "日本", "\"<&>'", "50%"]
      for name in names {
        let escaped = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        let reply = try await app.request(
          .post, "/api/notifications?pns=apns&to_tag=\(escaped)", as: name, body: #""x""#)
        #expect(reply.status == 200)
      }
      // A plus sign stands for itself: not every app escapes it in mail addresses.
      #expect(
        try await app.request(.post, "/api/notifications?pns=apns&to_tag=a+b@example.com", body: #""x""#).status == 200)
      let sends = try sink.sends()
      #expect(sends.map(\.audience) == (names + ["a+b@example.com"]).map { .user($0) })
      #expect(sends.map(\.sender) == names + ["alice"])
      #expect(sink.records.map { String(decoding: $0.key ?? [], as: UTF8.self) }.last == "username:a+b@example.com")
      for (send, name) in zip(sends, names) {
        #expect(try JSON(send.content.apns ?? [])["inAppMessage"] == .string("From \(name): x"))
      }
    }
  }

  @Test func invalidRequestIsRefusedNamingTheParameter() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for (query, field) in [
        ("pns=&to_tag=bob", "pns"), ("pns=apns&to_tag=username:bob", "to_tag"), ("pns=apns&to_tag=a%0ab", "to_tag"),
        ("pns=apns&to_tag=a%00b", "to_tag"), ("pns=apns&to_tag=bob&to_tag=carol", "to_tag"),
        ("pns=apns&to_tag=\(String(repeating: "x", count: 112))", "to_tag"),
      ] {
        try await app.request(.post, "/api/notifications?\(query)", body: #""x""#)
          .expectProblem(400, "invalidParameter", naming: field)
      }
      for body in ["hello", #"{"message":"x"}"#, "[\"x\"]", "null", "\"a\nb\"", #""\x""#, "\"open"] {
        try await app.request(.post, "/api/notifications?pns=apns&to_tag=bob", body: body).expectProblem(
          400, "malformedBody")
      }
      try await app.request(
        .post, "/api/notifications?pns=apns&to_tag=bob", body: #""x""#, type: "application/json;charset=iso-8859-1"
      ).expectProblem(415, "unsupportedMediaType")
      #expect(sink.isEmpty)
    }
  }

  /// Apps spell the type differently.
  @Test(arguments: [
    "application/json", "application/json; charset=UTF-8", "APPLICATION/JSON;Charset=\"utf-8\"", "text/json",
  ])
  func mediaTypeMayBeSpelledDifferently(type: String) async throws {
    try await Harness.run { app in
      let reply = try await app.request(.post, "/api/notifications?pns=apns&to_tag=bob", body: #""x""#, type: type)
      #expect(reply.status == 200)
    }
  }
}

/// A toast, parsed by Foundation.
private final class Toast: NSObject, XMLParserDelegate {
  private(set) var path: [String] = []
  private(set) var text = ""
  private(set) var template: String?
  private(set) var textID: String?

  /// Returns nil if the document is not well-formed.
  init?(_ document: String) {
    super.init()
    let parser = XMLParser(data: Data(document.utf8))
    parser.delegate = self
    guard parser.parse() else { return nil }
  }

  func parser(
    _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
    attributes: [String: String]
  ) {
    path.append(element)
    if element == "binding" { template = attributes["template"] }
    if element == "text" { textID = attributes["id"] }
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) {
    text += string
  }
}
