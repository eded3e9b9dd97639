import Foundation
import Support
import Testing

@testable import FanfareCore

@Suite struct ContentFaultTests {
  @Test(arguments: BadContent.cases) func faultNamesTheMember(bad: BadContent) throws {
    let send = try bad.read()
    let fault = #expect(throws: ContentFault.self) { try send.checkContent() }
    #expect(fault?.field == bad.field, "\(fault?.description ?? "")")
    #expect(fault?.outcome == PushOutcome(.rejected, reason: bad.reason))
  }

  /// A service that the send does not go to has nothing to refuse.
  @Test(arguments: BadContent.cases) func otherPlatformsAreNotConcerned(bad: BadContent) throws {
    let send = try bad.read()
    let others = PlatformSet(rawValue: PlatformSet.all.rawValue & ~PlatformSet(bad.platform).rawValue)
    try send.with { $0.platforms = others }.checkContent()
  }

  @Test(arguments: [
    #""message":{"badge":0}"#, #""message":{"sound":"default"}"#, #""message":{"data":{"k":"v"}}"#,
    #""message":{"body":"b","data":{"aps":"v"}},"platforms":["fcm","wns"]"#,
    #""message":{"data":{"from":"v"}},"native":{"fcm":{"data":{"k":"v"}}}"#,
    #""native":{"apns":{"aps":{"alert":"a"}},"headers":{"apns-priority":"1","apns-push-type":"alert"}}"#,
    #""native":{"apns":{"aps":{"alert":"a"}},"headers":{"apns-expiration":"4294967295"}}"#,
    #""native":{"fcm":{"message":{"notification":{"title":"t"},"android":{"ttl":"3.5s"}}}}"#,
    #""native":{"fcm":{"token":null,"data":{"k":"v"}}}"#, #""native":{"fcm":{"dry_run":true,"data":{"k":"v"}}}"#,
    #""native":{"wns":"<toast/>","headers":{"content-type":"text/xml; charset=utf-8","x-wns-ttl":"0"}}"#,
    #""native":{"wns":"<toast/>","headers":{"x-wns-type":"wns/raw","content-type":"application/octet-stream"}}"#,
    #""template":{"properties":{"from":"x"}}"#,
  ])
  func goodContentPasses(members: String) throws {
    var fields = SendFields()
    var reader = try JSONReader(Array("{\(members)}".utf8)[...])
    try reader.readObject { (key, reader) throws(JSONError) in _ = try fields.read(key, from: &reader) }
    fields.audience = .everyone
    try fields.request(id: .random(), acceptedAt: UnixTime(milliseconds: 0)).checkContent()
  }

  /// The estimate that spares rendering never passes what a service would refuse, and the other way round.
  @Test(arguments: ["x", "\"", "\u{1}", "<", "&", "é", "👾"]) func estimateAgreesWithTheRenderedPayload(
    character: String
  ) {
    func isAccepted(_ check: () throws(ContentFault) -> Void) -> Bool {
      do throws(ContentFault) {
        try check()
        return true
      } catch { return false }
    }
    for count in stride(from: 1, through: 4200, by: 37) {
      let text = String(repeating: character, count: count)
      for message in [
        Message(title: text), Message(title: text, body: text, badge: Int(Int32.max), sound: text),
        Message(body: "b", data: [text: text, "k": text]), Message(data: [text: "v"]),
      ] {
        let content = Content(message: message)
        let send = SendRequest(
          id: .random(), acceptedAt: UnixTime(milliseconds: 0), audience: .everyone, content: content)
        let fits =
          isAccepted { () throws(ContentFault) in _ = try APNsPayload(content) }
          && isAccepted { () throws(ContentFault) in _ = try FCMPayload.message(of: content) }
          && isAccepted { () throws(ContentFault) in _ = try WNSPayload(content) }
        #expect(isAccepted { () throws(ContentFault) in try send.checkContent() } == fits)
      }
    }
  }

  @Test func templatePartsWithoutExpressionsAreChecked() throws {
    func fault(_ content: Content) throws -> ContentFault? {
      let template = try ContentTemplate(content)
      do throws(ContentFault) {
        try template.check()
        return nil
      } catch { return error }
    }
    let long = String(repeating: "x", count: 4096)
    let open = Array(#"{"aps":{"alert":"$(a)"}}"#.utf8)
    #expect(try fault(Content.of(apns: open, headers: ["apns-priority": "7"]))?.field == "native.headers.apns-priority")
    #expect(try fault(Content.of(apns: open, headers: ["apns-priority": "$(p)"])) == nil)
    #expect(try fault(Content.of(apns: Array(#"{"a":"\#(long)"}"#.utf8)))?.outcome == .payloadTooLarge)
    #expect(try fault(Content.of(fcm: Array(#"{"data":{"from":"x"}}"#.utf8)))?.field == "native.fcm.data.from")
    #expect(try fault(Content.of(fcm: Array(#"{"data":{"k":"$(a)"}}"#.utf8))) == nil)
    #expect(try fault(Content.of(wns: "<toast a='$(a)'/>", headers: ["x-wns-ttl": "3.5s"]))?.outcome == .badHeader)
    #expect(try fault(Content(message: Message(body: "$(a)", data: ["pushId": "v"])))?.field == "message.data.pushId")
    #expect(try fault(Content(message: Message(body: "$(a)", data: ["aps": "v"])))?.field == "message.data.aps")
    #expect(try fault(Content(message: Message(body: "$(a)"))) == nil)
    #expect(try fault(Content(message: Message(sound: "default"))) == nil)
  }

  @Test(arguments: [
    ("<toast/>", "wns/toast"), ("<!--c--><toast><visual/></toast>", "wns/toast"),
    ("<?xml version=\"1.0\"?>\n<!-- <badge/> --><?pi > ?><tile/>", "wns/tile"),
    ("<!DOCTYPE badge><badge value='1'/>", "wns/badge"),
    ("<!DOCTYPE toast SYSTEM \"a>b\" [<!ENTITY x '>'>]>\n<toast launch=''/>", "wns/toast"),
    ("<!DOCTYPE toast [<!-- it's > --><?pi '?><!ENTITY x '<'>]><toast/>", "wns/toast"),
    ("<!DOCTYPE toast [<!-- it's ><toast/>", "wns/raw"),
    ("\u{FEFF}<!----><toast/>", "wns/toast"), ("<!--<toast/>-->", "wns/raw"), ("<!-- <toast/>", "wns/raw"),
    ("<?<toast/>", "wns/raw"), ("<!DOCTYPE <toast/>", "wns/raw"), ("<!--->-->", "wns/raw"), ("<toasts/>", "wns/raw"),
    ("text <toast/>", "wns/raw"), ("", "wns/raw"),
  ])
  func kindOfXMLFollowsFromItsRoot(payload: String, kind: String) {
    #expect(WNSPayload.kind(of: payload).rawValue == kind)
  }

  @Test(
    arguments: [
      ("0s", 0), ("3600s", 3600), ("3.9s", 3), ("2419201s", 2_419_200), ("99999999999999999999s", 2_419_200),
      ("1", nil),
      ("s", nil), (".5s", nil), ("1.s", nil), ("-1s", nil), ("1m", nil), ("1.2.3s", nil), ("", nil),
    ] as [(String, Int64?)])
  func durations(text: String, seconds: Int64?) {
    #expect(FCMPayload.seconds(ofDuration: text) == seconds)
  }
}
