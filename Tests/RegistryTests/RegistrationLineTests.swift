import FanfareCore
import Registry
import Support
import Testing

@Suite struct RegistrationLineTests {
  private static let now = UnixTime(milliseconds: 1_795_248_000_000)

  private func read(_ text: String) throws -> RegistrationLine {
    try RegistrationLine(Array(text.utf8)[...], number: 7, hub: .default, at: Self.now)
  }

  @Test func completeLineIsDecoded() throws {
    let line = try read(
      """
      {"id":"7A0C0000-0000-4000-8000-0000000000aa","user":"alice","platform":"GCM","handle":"t:1","installation":"i-1",
       "tags":["news","username:alice"],"registeredAt":"2026-01-02T00:00:00Z","createdAt":"2026-01-01T00:00:00Z",
       "lastSeen":"2026-01-03T01:00:00+01:00"}
      """)
    let registration = line.registration
    #expect(line.number == 7 && line.isIDGiven && line.isCreationGiven)
    #expect(registration.id.description == "7a0c0000-0000-4000-8000-0000000000aa")
    #expect((registration.user, registration.platform, registration.handle) == ("alice", .fcm, "t:1"))
    #expect(registration.installation == "i-1" && registration.tags == ["installation:i-1", "news", "username:alice"])
    #expect(registration.registeredAt.description == "2026-01-02T00:00:00.000Z")
    #expect(registration.createdAt.description == "2026-01-01T00:00:00.000Z")
    #expect(registration.seenAt.description == "2026-01-03T00:00:00.000Z")
    #expect(try read(String(decoding: registration.json, as: UTF8.self)).registration == registration)
  }

  @Test func whatClientsOfAzureGaveIsKept() throws {
    let line = try read(
      """
      {\(Self.sound),"timeZone":"GMT","azure":{"service":"Gcm"},"validUntil":"2026-01-02T00:00:00Z",
       "tags":["n"],"template":{"body":"{\\"data\\":{\\"a\\":\\"b\\"}}"}}
      """)
    #expect(line.registration.profile?.azure == ["service": "Gcm"])
    #expect(line.registration.validUntil?.description == "2026-01-02T00:00:00.000Z")
    #expect(line.registration.tags.contains("time-zone:GMT"))
    #expect(try read(String(decoding: line.registration.json, as: UTF8.self)).registration == line.registration)
  }

  @Test func minimalLineGetsDefaults() throws {
    let line = try read(#"{"user":"alice","platform":"apns","handle":"AB"}"#)
    #expect(!line.isIDGiven && !line.isCreationGiven)
    // The first line of a file that a Windows program wrote.
    let marked = try read("\u{FEFF}" + #"{"user":"alice","platform":"apns","handle":"AB","tags":["a","a"]}"#)
    #expect(marked.registration.tags == ["a", "username:alice"])
    #expect(line.registration.handle == "ab" && line.registration.tags == ["username:alice"])
    #expect(
      [line.registration.registeredAt, line.registration.createdAt, line.registration.seenAt] == [
        Self.now, Self.now, Self.now,
      ])
    let seen = try read(
      #"{"user":"a","platform":"fcm","handle":"t","tags":null,"installation":null,"lastSeen":"2026-01-03T00:00:00Z"}"#)
    #expect(seen.registration.registeredAt == seen.registration.seenAt && seen.registration.registeredAt < Self.now)
    // As stored by machines whose clocks differ.
    let late = try read(
      "{\(Self.sound),\"createdAt\":\"2026-01-02T00:00:00Z\",\"registeredAt\":\"2026-01-01T00:00:00Z\"}")
    #expect(late.registration.createdAt == late.registration.registeredAt && late.isCreationGiven)
  }

  private static let sound = #""user":"alice","platform":"fcm","handle":"faceface""#

  @Test(arguments: [
    ("", "ends in the middle of its JSON value"), ("[1]", "must be an object"),
    ("{", "ends in the middle of its JSON value"),
    (#"{"user":"faceface","platform":"fcm"}"#, "handle is missing"),
    (#"{"user":"alice","handle":"faceface"}"#, "platform is missing"),
    (#"{"platform":"fcm","handle":"faceface"}"#, "user is missing"),
    (#"{"user":"alice","platform":"faceface","handle":"x"}"#, "platform must be"),
    (#"{"user":"alice","platform":"apns","handle":"facefacex"}"#, "handle must be an even number of"),
    (#"{"user":"alice","platform":"wns","handle":"https://faceface.example.com"}"#, "handle must be an https URL"),
    (#"{"user":"alice","platform":"fcm","handle":"face face"}"#, "handle must be visible ASCII"),
    (#"{"user":"alice","platform":"fcm","handle":["faceface"]}"#, "handle must be a string"),
    (#"{"user":"face:face","platform":"fcm","handle":"x"}"#, "user: must be"),
    ("{\(sound),\"id\":\"faceface\"}", "id must be a UUID"),
    ("{\(sound),\"id\":\"faceface-face-7ace-8ace-facefaceface\"}", "id must be a random UUID"),
    ("{\(sound),\"id\":\"faceface-face-4ace-face-facefaceface\"}", "id must be a random UUID"),
    ("{\(sound),\"id\":\"00000000-0000-0000-0000-000000000001\"}", "id must be a random UUID"),
    ("{\(sound),\"handle\":\"faceface\"}", "handle must be given once"),
    ("{\(sound),\"tags\":[\"a\",\"face face\"]}", "tags[1] must be"),
    ("{\(sound),\"tags\":[\"username:faceface\"]}", "tags: a tag with"),
    ("{\(sound),\"installation\":\"i\",\"tags\":[\"installation:faceface\"]}", "tags: a tag with"),
    ("{\(sound),\"tags\":\"faceface\"}", "tags must be an array"),
    ("{\(sound),\"tags\":[\((0...121).map { "\"t\($0)\"" }.joined(separator: ","))]}", "tags[121] is one tag more"),
    (
      "{\(sound),\"tags\":[\((0...60).map { "\"t\($0)\"" }.joined(separator: ","))]}",
      "tags must be at most 60 without a template"
    ),
    ("{\(sound),\"timeZone\":\"Mars/face\"}", "timeZone: must be a time zone of the IANA database"),
    ("{\(sound),\"timeZone\":\"PST\"}", "timeZone: must be a time zone of the IANA database"),
    ("{\(sound),\"locale\":\"de face\"}", "locale must be a language tag"),
    ("{\(sound),\"locale\":\"de\",\"locale\":\"en\"}", "locale must be given once"),
    ("{\(sound),\"attributes\":{\"a\":\"\\ud800\"}}", "attributes.a"),
    ("{\(sound),\"validUntil\":\"faceface\"}", "validUntil must be a time"),
    (
      "{\(sound),\"template\":{\"body\":\"{}\",\"headers\":{\"apns-priority\":\"5\"}}}",
      "template.headers.apns-priority: does not belong to this platform"
    ),
    ("{\(sound),\"installation\":\"face face\"}", "installation: with its prefix"),
    ("{\(sound),\"registeredAt\":\"faceface\"}", "registeredAt must be a time"),
    ("{\(sound),\"lastSeen\":\"2126-01-01T00:00:00Z\"}", "lastSeen must not be in the future"),
    ("{\(sound),\"faceface\":1}", "has an unknown member"), ("{\(sound)} x", "has something after the end"),
  ])
  func invalidLineIsReportedByMember(text: String, problem: String) throws {
    do {
      _ = try read(text)
      Issue.record("nothing was thrown")
    } catch {
      #expect("\(error)".hasPrefix(problem), "\(error)")
      #expect(!"\(error)".contains("face"), "no value is repeated")
    }
  }

  @Test func invalidUTF8IsRefused() {
    #expect(throws: JSONError(field: "", problem: "is not UTF-8")) {
      try RegistrationLine([0x7B, 0xFF, 0x7D], number: 1, hub: .default, at: Self.now)
    }
  }
}
