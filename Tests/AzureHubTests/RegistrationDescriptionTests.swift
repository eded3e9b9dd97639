import FanfareCore
import Foundation
import Testing

@testable import AzureHub

/// Registrations as Azure's clients write them in Atom, and as they are written back.
struct RegistrationDescriptionTests {
  /// A name of a user is any text; one with a comma must not become a name and a tag.
  @Test(arguments: ["alice,x", " alice", "a, b"])
  func namesOfUsersAreReadAsTheyAreWritten(user: String) throws {
    let registration = Registration(
      id: .random(), hub: .default, user: user, platform: .apns, handle: "0a", tags: ["news", Tag.username(user)],
      installation: nil, registeredAt: UnixTime(milliseconds: 0), createdAt: UnixTime(milliseconds: 0))
    let tags = try AzureTags(list: AzureTags.list(of: registration).joined(separator: ","), field: "Tags")
    #expect(tags.user == user && tags.tags == ["news"])
  }

  static let token = String(repeating: "0A", count: 32)
  static let channel = "https://db5.notify.windows.com/?token=a%2bb&x=1"

  /// An entry as .NET's SDK writes it.
  static func entry(_ type: String, _ elements: String) -> String {
    """
    <?xml version="1.0" encoding="utf-16"?>
    <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">
    <\(type)RegistrationDescription xmlns:i="http://www.w3.org/2001/XMLSchema-instance" \
    xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">\(elements)\
    </\(type)RegistrationDescription></content></entry>
    """
  }

  private func read(_ document: String) throws -> RegistrationDescription {
    try RegistrationDescription(XMLTree(Array(document.utf8)[...]))
  }

  private func problem(_ type: String, _ elements: String) -> String? {
    do {
      _ = try read(Self.entry(type, elements))
      return nil
    } catch { return "\(error)" }
  }

  struct Example: CustomTestStringConvertible, Sendable {
    let type: String
    let elements: String
    let platform: Platform
    let handle: String
    var template: DeviceTemplate?
    var testDescription: String { type }
  }

  static let examples = [
    Example(
      type: "Apple", elements: "<Tags>news,username:alice</Tags><DeviceToken>\(token)</DeviceToken>", platform: .apns,
      handle: token),
    Example(
      type: "AppleTemplate",
      elements: """
        <Tags>news,username:alice</Tags><DeviceToken>\(token)</DeviceToken>\
        <BodyTemplate><![CDATA[{"aps":{"alert":"$(message)"}}]]></BodyTemplate><Expiry>2030-01-02T03:04:05Z</Expiry>\
        <TemplateName>alerts</TemplateName><Priority>5</Priority><ApnsHeaders><ApnsHeader>\
        <Header>apns-push-type</Header><Value>alert</Value></ApnsHeader></ApnsHeaders>
        """, platform: .apns, handle: token,
      template: DeviceTemplate(
        name: "alerts", body: #"{"aps":{"alert":"$(message)"}}"#,
        headers: ["apns-expiration": "1893553445", "apns-priority": "5", "apns-push-type": "alert"])),
    Example(
      type: "Windows",
      elements: "<ChannelUri>\(channel.replacing("&", with: "&amp;"))</ChannelUri><Tags> username:alice , news </Tags>",
      platform: .wns, handle: channel),
    Example(
      type: "WindowsTemplate",
      elements: """
        <Tags>news,username:alice</Tags><ChannelUri>\(channel.replacing("&", with: "&amp;"))</ChannelUri>\
        <BodyTemplate>&lt;toast&gt;&lt;text id="1"&gt;$(message)&lt;/text&gt;&lt;/toast&gt;</BodyTemplate>\
        <WnsHeaders><WnsHeader><Header>X-WNS-Type</Header><Value>wns/toast</Value></WnsHeader></WnsHeaders>\
        <TemplateName>toasts</TemplateName>
        """, platform: .wns, handle: channel,
      template: DeviceTemplate(
        name: "toasts", body: #"<toast><text id="1">$(message)</text></toast>"#, headers: ["x-wns-type": "wns/toast"])),
    Example(
      type: "Gcm", elements: "<GcmRegistrationId>fcm-token:1</GcmRegistrationId><Tags>news,username:alice</Tags>",
      platform: .fcm, handle: "fcm-token:1"),
    Example(
      type: "FcmV1Template",
      elements: """
        <Tags>news,username:alice</Tags><FcmV1RegistrationId>fcm-token:1</FcmV1RegistrationId>\
        <BodyTemplate><![CDATA[{"message":{"data":{"text":"$(message)"}}}]]></BodyTemplate>
        """, platform: .fcm, handle: "fcm-token:1",
      // Only the message of a request is stored, as in sends.
      template: DeviceTemplate(body: #"{"data":{"text":"$(message)"}}"#)),
  ]

  @Test(arguments: examples)
  func descriptionIsReadAndWrittenBackWithTheSameMeaning(example: Example) throws {
    let read = try read(Self.entry(example.type, example.elements))
    #expect(read.service.platform == example.platform)
    #expect(read.handle == example.handle)
    #expect(read.template == example.template)
    #expect(read.tags.tags == ["news"])
    #expect(read.tags.user == "alice")

    let id = RegistrationID.random()
    let request = read.request(id: id, hub: .default)
    #expect(request.user == "alice" && request.isTrusted)
    let row = Registration(
      id: id, hub: .default, user: "alice", platform: request.platform,
      handle: DeviceHandle.normalized(request.handle, platform: request.platform), tags: ["news", "username:alice"],
      installation: nil, registeredAt: UnixTime(milliseconds: 0), createdAt: UnixTime(milliseconds: 0),
      profile: request.profile)
    let entry = RegistrationEntry(row, isOlder: false)
    let document = entry.document { "https://hub.test/app/registrations/\($0)?api-version=2020-06" }
    let tree = try XMLTree(document[...])
    #expect(tree.attributes["etag"] == "W/\"\(entry.tag)\"")
    #expect(tree.value("id") == "https://hub.test/app/registrations/\(id)?api-version=2020-06")
    #expect(tree.child("content")?.children.first?.name == "\(example.type)RegistrationDescription")

    let again = try RegistrationDescription(tree)
    #expect(again.id == id.description)
    #expect(again.service == read.service)
    #expect(again.tags == read.tags)
    #expect(again.template == read.template)
    #expect(again.handle.lowercased() == read.handle.lowercased())
  }

  @Test func appleTokensAreWrittenInUpperCase() throws {
    let row = Registration(
      id: .random(), hub: .default, user: "alice", platform: .apns, handle: Self.token.lowercased(), tags: [],
      installation: nil, registeredAt: UnixTime(milliseconds: 0), createdAt: UnixTime(milliseconds: 0))
    let text = String(decoding: RegistrationEntry(row, isOlder: false).document { $0 }, as: UTF8.self)
    #expect(text.contains("<DeviceToken>\(Self.token)</DeviceToken>"))
  }

  @Test func elementsMayBeInAnyOrderAndUnknownOnesAreIgnored() throws {
    let read = try read(
      Self.entry(
        "Apple",
        "<Surprise><Tags>no</Tags></Surprise><DeviceToken>\(Self.token)</DeviceToken><ETag>5</ETag>"
          + "<!-- a comment --><Tags>one,two</Tags><RegistrationId>7-8-1</RegistrationId>"))
    #expect(read.tags.tags == ["one", "two"])
    #expect(read.id == "7-8-1")
  }

  @Test func typeMayStandInAnAttribute() throws {
    let read = try read(
      """
      <a:entry xmlns:a="http://www.w3.org/2005/Atom"><a:content type="application/xml"><RegistrationDescription \
      xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="AppleRegistrationDescription">\
      <DeviceToken>\(Self.token)</DeviceToken></RegistrationDescription></a:content></a:entry>
      """)
    #expect(read.service.platform == .apns)
  }

  @Test func systemTagsAreTranslatedInBothForms() throws {
    for tags in ["$InstallationId:{phone-1},$UserId:{bob}", "$installationid:phone-1,$UserId:bob"] {
      let read = try read(
        Self.entry("Apple", "<DeviceToken>\(Self.token)</DeviceToken><Tags>\(tags)</Tags>"))
      #expect(read.tags.installation == "phone-1")
      #expect(read.tags.user == "bob")
      let request = read.request(id: .random(), hub: .default)
      #expect(request.user == "bob" && request.tags == ["installation:phone-1"])
    }
  }

  @Test func deviceWithoutUserGetsOneOfItsOwnThatIsNotShown() throws {
    let read = try read(Self.entry("Apple", "<DeviceToken>\(Self.token)</DeviceToken>"))
    let request = read.request(id: RegistrationID(azure: "123-234-1"), hub: .default)
    #expect(request.user == "device-\(RegistrationID(azure: "123-234-1"))")
    let row = Registration(
      id: .random(), hub: .default, user: request.user, platform: .apns, handle: request.handle,
      tags: [Tag.username(request.user), "x"], installation: nil, registeredAt: UnixTime(milliseconds: 0),
      createdAt: UnixTime(milliseconds: 0))
    #expect(AzureTags.list(of: row) == ["x"])
  }

  @Test func pushVariablesAreTheAttributesOfTheDevice() throws {
    let read = try read(
      Self.entry(
        "AppleTemplate",
        """
        <PushVariables>{"City":"Wien &amp; Umgebung"}</PushVariables><DeviceToken>\(Self.token)</DeviceToken>\
        <BodyTemplate>{"aps":{"alert":"$(city)"}}</BodyTemplate><Expiry i:nil="true"/>
        """))
    #expect(read.pushVariables == ["city": "Wien & Umgebung"])
    #expect(read.request(id: .random(), hub: .default).profile?.attributes == ["city": "Wien & Umgebung"])
  }

  @Test(arguments: [
    ("Fcm", "<FcmRegistrationId>x</FcmRegistrationId>", "FcmRegistrationDescription is not supported"),
    ("Mpns", "<ChannelUri>x</ChannelUri>", "MpnsRegistrationDescription is not supported"),
    ("AdmTemplate", "<AdmRegistrationId>x</AdmRegistrationId>", "AdmRegistrationDescription is not supported"),
    ("Apple", "<Tags>a</Tags>", "DeviceToken is missing"),
    ("Apple", "<DeviceToken>xyz</DeviceToken>", "DeviceToken must be an even number"),
    ("Apple", "<DeviceToken>00</DeviceToken><Tags>a b</Tags>", "Tags: a tag must be"),
    ("Apple", "<DeviceToken>00</DeviceToken><Tags>$UserId:{a},username:b</Tags>", "Tags must not name two users"),
    ("Windows", "<ChannelUri>https://evil.test/</ChannelUri>", "ChannelUri must be an https URL"),
    ("AppleTemplate", "<DeviceToken>00</DeviceToken>", "BodyTemplate is missing"),
    (
      "AppleTemplate", #"<DeviceToken>00</DeviceToken><BodyTemplate>{"aps":{"alert":"$(a"}}</BodyTemplate>"#,
      "BodyTemplate: native.apns: aps.alert, character 4"
    ),
    (
      "AppleTemplate",
      """
      <DeviceToken>00</DeviceToken><BodyTemplate>{}</BodyTemplate><ApnsHeaders><ApnsHeader><Header>apns-topic</Header>\
      <Value>x</Value></ApnsHeader></ApnsHeaders>
      """, "a template's header must be one of apns-collapse-id"
    ),
    ("AppleTemplate", "<DeviceToken>00</DeviceToken><Expiry>soon</Expiry>", "Expiry must be a date"),
    ("Nonsense", "", "the specified resource description is invalid"),
  ])
  func wrongDescriptionIsRefusedWithTheFieldsName(type: String, elements: String, expected: String) {
    let problem = problem(type, elements)
    #expect(problem?.hasPrefix(expected) == true, "\(problem ?? "accepted")")
  }

  @Test(arguments: ["2030-01-02T03:04:05", "2030-01-02T03:04:05Z", "01/02/2030 03:04:05", "1893553445"])
  func expiryIsReadInAllFormsOfClients(text: String) throws {
    let read = try read(
      Self.entry(
        "AppleTemplate",
        "<DeviceToken>00</DeviceToken><BodyTemplate>{}</BodyTemplate><Expiry>\(text)</Expiry>"))
    #expect(read.template?.headers["apns-expiration"] == "1893553445")
  }

  @Test func tagChangesWithContentAndTime() {
    func row(_ tags: [String], at milliseconds: Int64) -> Registration {
      Registration(
        id: .random(), hub: .default, user: "a", platform: .apns, handle: "00", tags: tags, installation: nil,
        registeredAt: UnixTime(milliseconds: milliseconds), createdAt: UnixTime(milliseconds: 0))
    }
    #expect(RegistrationEntry.tag(of: row(["x"], at: 1)) == RegistrationEntry.tag(of: row(["x"], at: 1)))
    #expect(RegistrationEntry.tag(of: row(["x"], at: 1)) != RegistrationEntry.tag(of: row(["x"], at: 2)))
    #expect(RegistrationEntry.tag(of: row(["x"], at: 1)) != RegistrationEntry.tag(of: row(["y"], at: 1)))
  }

  private func row(_ document: String) throws -> Registration {
    let request = try read(document).request(id: .random(), hub: .default)
    return Registration(
      id: .random(), hub: .default, user: request.user, platform: request.platform, handle: request.handle, tags: [],
      installation: nil, registeredAt: UnixTime(milliseconds: 0), createdAt: UnixTime(milliseconds: 0),
      profile: request.profile)
  }

  /// Microsoft's clients set the priority as an element or as a header field, and compare what they read.
  @Test(arguments: [
    ("<Priority>5</Priority>", "<Priority>5</Priority>"),
    (
      "<ApnsHeaders><ApnsHeader><Header>apns-priority</Header><Value>5</Value></ApnsHeader></ApnsHeaders>",
      "<ApnsHeaders><ApnsHeader><Header>apns-priority</Header><Value>5</Value></ApnsHeader></ApnsHeaders>"
    ),
    (
      """
      <Expiry>2030-01-02T03:04:05+01:00</Expiry><TemplateName>n</TemplateName><Priority>$(p)</Priority><ApnsHeaders>\
      <ApnsHeader><Header>Apns-Push-Type</Header><Value>alert</Value></ApnsHeader><ApnsHeader>\
      <Header>APNS-PRIORITY</Header><Value>1</Value></ApnsHeader></ApnsHeaders>
      """,
      """
      <Expiry>2030-01-02T03:04:05+01:00</Expiry><TemplateName>n</TemplateName><Priority>$(p)</Priority><ApnsHeaders>\
      <ApnsHeader><Header>Apns-Push-Type</Header><Value>alert</Value></ApnsHeader></ApnsHeaders>
      """
    ),
    ("<Expiry>$(when)</Expiry>", "<Expiry>$(when)</Expiry>"),
    ("<Expiry>1893553445</Expiry>", "<Expiry>1893553445</Expiry>"),
    (
      "<ApnsHeaders><ApnsHeader><Header>apns-expiration</Header><Value>0</Value></ApnsHeader></ApnsHeaders>",
      "<ApnsHeaders><ApnsHeader><Header>apns-expiration</Header><Value>0</Value></ApnsHeader></ApnsHeaders>"
    ),
    ("<Expiry>2030-01-02T03:04:05</Expiry>", "<Expiry>2030-01-02T03:04:05</Expiry>"),
  ])
  func templateComesBackAsItWasGiven(given: String, expected: String) throws {
    let row = try row(
      Self.entry("AppleTemplate", "<DeviceToken>00</DeviceToken><BodyTemplate>{}</BodyTemplate>\(given)"))
    // As it is stored.
    let stored = try DeviceProfile.read(JSONWriter.bytes(of: try #require(row.profile))[...])
    #expect(stored == row.profile)
    let text = String(decoding: RegistrationEntry(row, isOlder: false).document { $0 }, as: UTF8.self)
    #expect(
      text.contains("<BodyTemplate>{}</BodyTemplate>\(expected)</AppleTemplateRegistrationDescription>"), "\(text)")
  }

  /// As an earlier release stored it, and other routes store it.
  @Test func rowWithoutAFormReadsAsBefore() throws {
    func text(_ profile: DeviceProfile?, _ platform: Platform, isOlder: Bool) -> String {
      let row = Registration(
        id: .random(), hub: .default, user: "a", platform: platform, handle: "00", tags: [], installation: nil,
        registeredAt: UnixTime(milliseconds: 0), createdAt: UnixTime(milliseconds: 0), profile: profile)
      return String(decoding: RegistrationEntry(row, isOlder: isOlder).document { $0 }, as: UTF8.self)
    }
    #expect(text(nil, .fcm, isOlder: false).contains("<FcmV1RegistrationDescription "))
    #expect(text(nil, .fcm, isOlder: true).contains("<GcmRegistrationDescription "))
    let template = DeviceTemplate(body: "{}", headers: ["apns-priority": "5", "apns-expiration": "1893553445"])
    let apple = text(DeviceProfile(template: template), .apns, isOlder: false)
    #expect(apple.contains("<Expiry>2030-01-02T03:04:05.000Z</Expiry><Priority>5</Priority>"), "\(apple)")
  }

  @Test func idsThatAreNoUUIDsHaveRowsOfTheirOwn() {
    let id = RegistrationID.random()
    #expect(RegistrationID(azure: "\(id)".uppercased()) == id)
    #expect(RegistrationID(azure: "123-234-1") == RegistrationID(azure: "123-234-1"))
    #expect(RegistrationID(azure: "123-234-1") != RegistrationID(azure: "123-234-2"))
  }
}
