import FanfareCore
import Registry
import Testing

@testable import AzureHub

/// Registrations that Azure wrote, as lines for an import.
@Suite struct MigrationTests {
  private static let time = UnixTime(milliseconds: 1_795_248_000_000)
  private static let namespaces =
    #"xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect""#

  private func lines(_ list: AzureRegistrations) throws -> [Registration] {
    try list.lines.split(separator: UInt8(ascii: "\n")).enumerated().map { index, line in
      try RegistrationLine(line[...], number: index + 1, hub: .default, at: Self.time).registration
    }
  }

  @Test func linesOfAnExportJobAreImportable() throws {
    var list = AzureRegistrations(at: Self.time)
    let native = """
      <WindowsRegistrationDescription \(Self.namespaces)><ETag>3</ETag><RegistrationId>7-8-1</RegistrationId>\
      <Tags>$InstallationId:{phone-1}, $UserId:{bob}, news</Tags>\
      <ChannelUri>https://db5p.notify.windows.com/?token=a&amp;b=c</ChannelUri></WindowsRegistrationDescription>
      """
    let template = """
      <AppleTemplateRegistrationDescription \(Self.namespaces)><RegistrationId>7-8-2</RegistrationId>\
      <PushVariables>{"name":"Bob"}</PushVariables><DeviceToken>ABCD</DeviceToken>\
      <BodyTemplate><![CDATA[{"aps":{"alert":"$(message)"}}]]></BodyTemplate><Expiry i:nil="true"/>\
      <TemplateName>greeting</TemplateName></AppleTemplateRegistrationDescription>
      """
    // A byte order mark, as .NET writes it.
    list.add(line: Array(("\u{FEFF}" + native).utf8)[...], number: 1)
    list.add(line: Array(template.utf8)[...], number: 2)
    #expect(list.refusals.isEmpty && list.count == 2)
    let rows = try lines(list)
    #expect(rows.map(\.id) == [RegistrationID(azure: "7-8-1"), RegistrationID(azure: "7-8-2")])
    #expect(rows[0].user == "bob" && rows[0].installation == "phone-1")
    #expect(rows[0].tags == ["installation:phone-1", "news", "username:bob"])
    #expect(rows[0].handle == "https://db5p.notify.windows.com/?token=a&b=c" && rows[0].registeredAt == Self.time)
    #expect(rows[1].user == UserName.ofDevice(rows[1].id) && rows[1].handle == "abcd")
    #expect(rows[1].profile?.template?.name == "greeting" && rows[1].profile?.attributes == ["name": "Bob"])
  }

  @Test func registrationsThatCannotBeTakenOverAreNamed() throws {
    var list = AzureRegistrations(at: Self.time)
    let adm = """
      <AdmRegistrationDescription \(Self.namespaces)><RegistrationId>1</RegistrationId>\
      <AdmRegistrationId>secret-handle</AdmRegistrationId></AdmRegistrationDescription>
      """
    list.add(line: Array(adm.utf8)[...], number: 1)
    list.add(line: Array("no XML secret-handle".utf8)[...], number: 2)
    #expect(list.count == 0 && list.lines.isEmpty)
    #expect(list.refusals.map(\.registration) == ["line 1", "line 2"])
    #expect(list.refusals[0].reason.contains("AdmRegistrationDescription is not supported"))
    #expect(list.refusals.allSatisfy { !$0.reason.contains("secret-handle") })
  }

  @Test func pageOfTheListIsRead() throws {
    let feed = """
      <feed xmlns="http://www.w3.org/2005/Atom"><title type="text">Registrations</title><entry><title type="text">7-8-1\
      </title><content type="application/xml"><GcmRegistrationDescription \(Self.namespaces)><GcmRegistrationId>t\
      </GcmRegistrationId></GcmRegistrationDescription></content></entry></feed>
      """
    let list = try AzureRegistrations(feed: Array(feed.utf8)[...], at: Self.time)
    #expect(try lines(list).map(\.id) == [RegistrationID(azure: "7-8-1")])
    #expect(try lines(list).map(\.profile?.azure) == [["service": "Gcm"]])
    #expect(throws: AzureRegistrations.NoList.self) {
      try AzureRegistrations(feed: Array("<Error><Code>500</Code></Error>".utf8)[...], at: Self.time)
    }
  }
}
