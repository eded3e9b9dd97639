import AsyncHTTPClient
import Crypto
import FanfareCore
import Foundation
import FoundationXML
import NIOHTTP1
import Support
import Testing

@testable import PushServices

@Suite struct WNSRendererTests {
  /// Collects the texts of all elements and the attributes of the root.
  private final class Reader: NSObject, XMLParserDelegate {
    var texts: [String] = []
    var root: [String: String]?
    private var isInText = false

    func parser(
      _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
      attributes: [String: String]
    ) {
      if root == nil { root = attributes }
      isInText = name == "text"
      if isInText { texts.append("") }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
      if isInText { texts[texts.count - 1] += string }
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
      isInText = false
    }
  }

  private func read(_ body: [UInt8]) throws -> Reader {
    let reader = Reader()
    let parser = XMLParser(data: Data(body))
    parser.delegate = reader
    try #require(parser.parse(), "\(String(decoding: body, as: UTF8.self))")
    return reader
  }

  private func field(_ rendering: RenderedPush, _ name: String) -> String? {
    rendering.headers.first { $0.name == name }?.value
  }

  /// The text without the characters that XML 1.0 forbids.
  private func allowed(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.filter {
          $0.value >= 0x20 && $0.value != 0xFFFE && $0.value != 0xFFFF || [0x09, 0x0A, 0x0D].contains($0.value)
        }))
  }

  @Test func toast() throws {
    let rendering = try WNSRenderer.render(Fixtures.send(Message(title: "T", body: "B"), collapseKey: "score1"))
    #expect(
      String(decoding: rendering.body, as: UTF8.self)
        == #"<toast><visual><binding template="ToastGeneric"><text>T</text><text>B</text></binding></visual></toast>"#)
    #expect(
      rendering.headers == [
        .init("content-type", "text/xml"), .init("x-wns-type", "wns/toast"), .init("x-wns-priority", "1"),
        .init("x-wns-tag", "score1"),
      ])
  }

  @Test(arguments: Fixtures.hostileTexts) func hostileTextArrivesWithoutCharactersForbiddenInXML(text: String) throws {
    let message = Message(title: text, body: "x" + text, data: ["k" + text: text])
    let reader = try read(WNSRenderer.render(Fixtures.send(message)).body)
    #expect(reader.texts == [allowed(text), "x" + allowed(text)])
    let launch = try #require(reader.root?["launch"])
    let values = try Fixtures.object(Array(launch.utf8))
    // In JSON the control characters are escaped, so only the two non-characters are lost.
    let inJSON = String(
      String.UnicodeScalarView(text.unicodeScalars.filter { $0.value != 0xFFFE && $0.value != 0xFFFF }))
    #expect(values["k" + inJSON] as? String == inJSON)
  }

  @Test func badgeAndRaw() throws {
    let badge = try WNSRenderer.render(
      Fixtures.send(Message(data: ["k": "v"], badge: 7), priority: .normal, collapseKey: "score"))
    #expect(String(decoding: badge.body, as: UTF8.self) == #"<badge value="7"/>"#)
    #expect(field(badge, "x-wns-type") == "wns/badge")
    #expect(field(badge, "x-wns-priority") == "2")
    #expect(field(badge, "x-wns-tag") == nil)
    let raw = try WNSRenderer.render(Fixtures.send(Message(data: ["k": "v\"", "a": "b"])))
    #expect(String(decoding: raw.body, as: UTF8.self) == #"{"a":"b","k":"v\""}"#)
    #expect(field(raw, "x-wns-type") == "wns/raw")
    #expect(field(raw, "x-wns-cache-policy") == "cache")
    #expect(field(badge, "x-wns-cache-policy") == nil)
    #expect(field(raw, "content-type") == "application/octet-stream")
  }

  @Test(arguments: [
    ("<toast><visual/></toast>", "wns/toast"), ("<toast launch='x'/>", "wns/toast"), ("<toast/>", "wns/toast"),
    ("\u{FEFF} \n<?xml version=\"1.0\"?>\n<toast>", "wns/toast"), ("<tile>", "wns/tile"),
    ("<!--c--><toast/>", "wns/toast"), ("<?pi?><!DOCTYPE tile><tile/>", "wns/tile"),
    ("<badge value=\"1\"/>", "wns/badge"),
    ("<toaster>", "wns/raw"), ("<Toast>", "wns/raw"), ("toast", "wns/raw"), ("{\"secureId\":\"x\"}", "wns/raw"),
    ("<", "wns/raw"),
    ("<toast", "wns/raw"), ("<?xml", "wns/raw"),
  ])
  func nativePayload(payload: String, type: String) throws {
    let rendering = try WNSRenderer.render(Fixtures.send(Content.of(message: Message(body: "other"), wns: payload)))
    #expect(rendering.body == Array(payload.utf8))
    #expect(field(rendering, "x-wns-type") == type)
    #expect(field(rendering, "content-type") == (type == "wns/raw" ? "application/octet-stream" : "text/xml"))
  }

  @Test func refusals() {
    for content in [
      Content(message: Message()), Content(message: Message(sound: "default")), Content.of(wns: ""),
      Content.of(apns: []),
    ] {
      #expect(throws: PushOutcome(.rejected, reason: "PayloadEmpty")) { try WNSRenderer.render(Fixtures.send(content)) }
    }
    for content in [
      Content.of(wns: String(repeating: "x", count: 5001)),
      Content(message: Message(body: String(repeating: "<", count: 1250))),
    ] {
      #expect(throws: PushOutcome(.rejected, reason: "PayloadTooLarge")) {
        try WNSRenderer.render(Fixtures.send(content))
      }
    }
  }

  @Test(arguments: [
    "match7", "sixteenletters12", "match-7", "seventeenletters1", "a b", "é", "a\r\nx-evil: 1",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
  ])
  func anyCollapseKeyBecomesATag(key: String) throws {
    for content in [
      Content(message: Message(body: "b")), Content.of(wns: "<!--c--><toast/>"), Content.of(wns: "<tile/>"),
    ] {
      let tag = try #require(field(try WNSRenderer.render(Fixtures.send(content, collapseKey: key)), "x-wns-tag"))
      #expect(WNSFields.isTag(tag))
      #expect(WNSFields.isTag(key) ? tag == key : tag == Self.digest(of: key))
    }
    #expect(field(try WNSRenderer.render(Fixtures.send(Content.of(wns: "raw"), collapseKey: key)), "x-wns-tag") == nil)
    let own = Content.of(wns: "<toast/>", headers: ["x-wns-tag": "own"])
    #expect(field(try WNSRenderer.render(Fixtures.send(own, collapseKey: key)), "x-wns-tag") == "own")
  }

  private static func digest(of key: String) -> String {
    SHA256.hash(data: Data(key.utf8)).prefix(8).map { String(format: "%02x", $0) }.joined()
  }

  @Test func sendWithoutCollapseKeyHasNoTag() throws {
    for key in [nil, ""] {
      let rendering = try WNSRenderer.render(Fixtures.send(Message(body: "b"), collapseKey: key))
      #expect(field(rendering, "x-wns-tag") == nil)
    }
  }

  /// A type of the caller's decides about all that follows from the type.
  @Test func otherFieldsFollowFromTheCallersType() throws {
    let raw = try WNSRenderer.render(
      Fixtures.send(Content.of(wns: "<toast/>", headers: ["x-wns-type": "wns/raw"]), collapseKey: "k"))
    #expect(
      raw.headers == [
        .init("content-type", "application/octet-stream"), .init("x-wns-cache-policy", "cache"),
        .init("x-wns-priority", "1"), .init("x-wns-type", "wns/raw"),
      ])
    let toast = try WNSRenderer.render(Fixtures.send(Content.of(wns: "x", headers: ["x-wns-type": "wns/toast"])))
    #expect(field(toast, "content-type") == "text/xml")
    #expect(field(toast, "x-wns-cache-policy") == nil)
  }

  @Test func correlationVector() {
    #expect(WNSCorrelation.vector(of: Fixtures.pushID) == "EREiIjMzhESFVWZmd3eIiA.0")
  }

  @Test func headersOfTheCallerReplaceTheDerivedOnes() throws {
    let headers = [
      "x-wns-type": "wns/raw", "x-wns-ttl": "60", "content-type": "application/octet-stream",
      "x-wns-cache-policy": "no-cache",
    ]
    let rendering = try WNSRenderer.render(
      Fixtures.send(Content.of(wns: "<toast/>", headers: headers.merging(["apns-priority": "5"]) { $1 })))
    let fields = Dictionary(grouping: rendering.headers, by: \.name).mapValues { $0.map(\.value) }
    #expect(fields == headers.mapValues { [$0] }.merging(["x-wns-priority": ["1"]]) { $1 })
    #expect(throws: PushOutcome(.rejected, reason: "BadHeader")) {
      try WNSRenderer.render(Fixtures.send(Content.of(wns: "<toast/>", headers: ["x-wns-tag": "a\r\nb: c"])))
    }
    #expect(throws: PushOutcome(.rejected, reason: "BadHeader")) {
      try WNSRenderer.render(Fixtures.send(Content.of(wns: "<toast/>", headers: ["x-wns-ttl": "soon"])))
    }
  }

  @Test(arguments: [("60", 3600, "60"), ("3600", 59, "59"), ("0", 59, "0")])
  func timeToLiveIsTheSmallerOneAndSentOnce(_ callers: String, _ remaining: Int, _ sent: String) throws {
    let rendering = try WNSRenderer.render(Fixtures.send(Content.of(wns: "<toast/>", headers: ["x-wns-ttl": callers])))
    let handle = "https://db5.notify.windows.com/?token=AwYA"
    let push = Push(
      ticket: 1, id: Fixtures.pushID, handle: handle, rendering: rendering,
      expiresAt: Fixtures.now + .seconds(remaining))
    let channel = try #require(ChannelURI(handle))
    let request = WNSRequestWriter().request(for: push, channel: channel, token: "t", now: Fixtures.now)
    #expect(request?.headers["x-wns-ttl"] == [sent])
  }

  /// A registered channel can be requested byte for byte, whatever its characters.
  @Test func everyRegisteredChannelCanBeRequested() throws {
    let rendering = try WNSRenderer.render(Fixtures.send(Message(body: "b")))
    var accepted = 0
    for character in (UInt8(0x21)..<0x7F).map({ String(UnicodeScalar($0)) }) + ["%2f", "%ZZ", "%4", "é"] {
      for handle in [
        "https://db5.notify.windows.com/?token=a\(character)b", "https://db5.notify.windows.com/w\(character)/?token=a",
        "https://db5.notify.windows.com?a\(character)", "https://db5.notify.windows.com/\(character)",
      ] {
        guard let channel = ChannelURI(handle) else { continue }
        accepted += 1
        let push = Push(
          ticket: 1, id: Fixtures.pushID, handle: handle, rendering: rendering, expiresAt: Fixtures.now + .seconds(60))
        let request = WNSRequestWriter().request(for: push, channel: channel, token: "t", now: Fixtures.now)
        #expect(request != nil, "\(handle)")
      }
    }
    #expect(accepted > 300)
  }
}
