import FanfareCore
import Foundation
import FrontEnd
import NIOHTTP1
import Registry
import Support
import Testing

@testable import AzureHub

/// Installations over a real socket.
struct InstallationRouteTests {
  @Test func installationIsReadAsSoonAsItIsWritten() async throws {
    try await AzureHarness.run { harness in
      let path = "/orders/installations/phone-1?api-version=2020-06"
      #expect(try await harness.request(.GET, path, as: .listen).status == 404)
      #expect(try await harness.request(.DELETE, path, as: .listen).status == 204)
      let written = try await harness.request(
        .PUT, path, as: .listen, headers: [("Content-Type", "application/json")], body: InstallationTests.body)
      #expect(written.status == 200 && written.text.isEmpty, "\(written.text)")
      #expect(written["Content-Location"] == "http://127.0.0.1:\(harness.port)\(path)")
      let read = try await harness.request(.GET, path, as: .listen)
      #expect(read.status == 200 && read["Content-Type"] == "application/json; charset=utf-8")
      let first = try InstallationDocument(Array(read.text.utf8)[...], id: "phone-1")
      #expect(first.user == "alice" && first.handle == "0A0B" && Set(first.templates.keys) == ["alerts", "My Name"])

      let patched = try await harness.request(
        .PATCH, path, as: .listen, headers: [("Content-Type", "application/json-patch+json")],
        body: """
          [{"op":"replace","path":"/pushChannel","value":"0C0D"},{"op":"add","path":"/tags","value":"sport"},
           {"op":"remove","path":"/templates/My Name"},{"op":"replace","path":"/userId","value":"bob"}]
          """)
      #expect(patched.status == 200, "\(patched.text)")
      let again = try InstallationDocument(
        Array(try await harness.request(.GET, path, as: .listen).text.utf8)[...], id: "phone-1")
      #expect(again.user == "bob" && again.handle == "0C0D" && again.tags.tags == ["news", "sport"])
      #expect(Set(again.templates.keys) == ["alerts"])
      // One registration without a template and one with it, as Azure materialises them.
      let rows = try await harness.request(.GET, "/orders/tags/$InstallationId:%7Bphone-1%7D/registrations", as: .full)
      #expect(try XMLTree(Array(rows.text.utf8)[...]).children.count { $0.name == "entry" } == 2, "\(rows.text)")

      let wrong = try await harness.request(
        .PATCH, path, as: .listen, body: #"[{"op":"add","path":"/platform","value":"wns"}]"#)
      #expect(wrong.status == 400 && wrong.text.contains("[0] /platform: this path cannot be changed"))
      #expect(try await harness.request(.DELETE, path, as: .listen).status == 204)
      #expect(try await harness.request(.GET, path, as: .listen).status == 404)
      let rest = try await harness.request(.GET, "/orders/registrations", as: .full)
      #expect(!rest.text.contains("<entry"), "\(rest.text)")
    }
  }
  /// As a client does that lists registrations and changes one.
  @Test func anInstallationStaysOneWhenItsRegistrationIsPut() async throws {
    try await AzureHarness.run { harness in
      let path = "/orders/installations/phone-1"
      #expect(try await harness.request(.PUT, path, as: .listen, body: InstallationTests.body).status == 200)
      let list = try await harness.request(
        .GET, "/orders/registrations?$filter=ChannelUri+eq+%270a0b%27", as: .listen)
      let entries = try XMLTree(Array(list.text.utf8)[...]).children.filter { $0.name == "entry" }
      let native = try #require(
        entries.compactMap { $0.child("content")?.children.first }.first { $0.name == "AppleRegistrationDescription" })
      let (id, tags) = (try #require(native.value("RegistrationId")), try #require(native.value("Tags")))
      let put = try await harness.request(
        .PUT, "/orders/registrations/\(id)", as: .listen,
        body: "<AppleRegistrationDescription><Tags>\(tags),sport</Tags><DeviceToken>0a0b</DeviceToken>"
          + "</AppleRegistrationDescription>")
      #expect(put.status == 200, "\(put.text)")
      let read = try InstallationDocument(
        Array(try await harness.request(.GET, path, as: .listen).text.utf8)[...], id: "phone-1")
      #expect(read.tags.tags == ["news", "sport"] && Set(read.templates.keys) == ["alerts", "My Name"])
      #expect(try await harness.request(.DELETE, path, as: .listen).status == 204)
      let rest = try await harness.request(.GET, "/orders/registrations", as: .full)
      #expect(!rest.text.contains("<entry"), "\(rest.text)")
    }
  }

  /// Both mobile SDKs send an end, 90 days from now, with each change.
  @Test func installationEndsUnlessItIsRenewed() async throws {
    try await AzureHarness.run { harness in
      let path = "/orders/installations/phone-1"
      func put(_ end: Duration) async throws -> AzureReply {
        let text = (harness.clock.now() + end).description.prefix(16) + "+0000"
        return try await harness.request(
          .PUT, path, as: .listen,
          body: #"{"platform":"apns","pushChannel":"0A0B","expirationTime":"\#(text)","templates":{"t":{"body":"{}"}}}"#
        )
      }
      func expire() async throws -> Int {
        var removed = 0
        let expiry = RegistrationExpiry(
          directory: harness.registry, hubs: [try #require(HubName("orders"))], lifetime: nil, clock: harness.clock)
        try await expiry.walk { removed += try $1.get() }
        return removed
      }
      #expect(try await put(.seconds(7200)).status == 200)
      let read = try await harness.request(.GET, path, as: .listen)
      #expect(read.text.contains(#""expirationTime":"20"#), "\(read.text)")
      #expect(try await expire() == 0)
      harness.clock.advance(by: .seconds(3600))
      #expect(try await put(.seconds(7200)).status == 200)
      harness.clock.advance(by: .seconds(3600))
      #expect(try await expire() == 0, "it was renewed")
      let patched = try await harness.request(
        .PATCH, path, as: .listen, body: #"[{"op":"add","path":"/tags","value":"sport"}]"#)
      #expect(patched.status == 200, "\(patched.text)")
      harness.clock.advance(by: .seconds(3600))
      #expect(try await harness.request(.GET, path, as: .listen).status == 404, "it has ended, and is not removed yet")
      #expect(try await harness.request(.PATCH, path, as: .listen, body: "[]").status == 404)
      #expect(try await expire() == 2, "the template, too")
      let past = try await put(.seconds(-7200))
      #expect(past.status == 400 && past.text.contains("expirationTime must be in the future"), "\(past.text)")
      #expect(try await put(.seconds(7200)).status == 200)
      #expect(try await harness.request(.GET, path, as: .listen).status == 200)
    }
  }

  private static func channel(_ name: String) -> String { "https://x.notify.windows.com/?token=\(name)" }

  @Test func secondaryTilesArePutPatchedReadAndRemoved() async throws {
    let body = """
      {"platform":"WNS","pushChannel":"\(Self.channel("main"))","userId":"alice","tags":["all"],
       "templates":{"t":{"body":"<a>$(x)</a>"}},
       "secondaryTiles":{"news":{"pushChannel":"\(Self.channel("n"))","pushChannelExpired":null,"tags":["news"],
       "templates":{"t":{"body":"<b>$(x)</b>","headers":{"X-WNS-Type":"wns/tile"},"tags":["loud"]}}},
       "gone":{"pushChannel":"\(Self.channel("g"))"}}}
      """
    try await AzureHarness.run { harness in
      let path = "/orders/installations/pc-1?api-version=2020-06"
      let written = try await harness.request(.PUT, path, as: .listen, body: body)
      #expect(written.status == 200, "\(written.text)")
      func read() async throws -> InstallationDocument {
        let reply = try await harness.request(.GET, path, as: .listen)
        return try InstallationDocument(Array(reply.text.utf8)[...], id: "pc-1")
      }
      let first = try await read()
      #expect(first.handle == Self.channel("main") && first.tags.tags == ["all"] && Set(first.templates.keys) == ["t"])
      #expect(Set(first.tiles.keys) == ["news", "gone"])
      let news = try #require(first.tiles["news"])
      #expect(news.handle == Self.channel("n") && news.tags.tags == ["news"])
      #expect(news.templates["t"]?.template.body == "<b>$(x)</b>")
      // As at an installation's templates, the name is a tag too.
      #expect(Set(news.templates["t"]?.tags.tags ?? []) == ["loud", "t"])
      #expect(news.templates["t"]?.template.headers == ["x-wns-type": "wns/tile"])

      let patched = try await harness.request(
        .PATCH, path, as: .listen,
        body: """
          [{"op":"replace","path":"/secondaryTiles/news/pushChannel","value":"\(Self.channel("n2"))"},
           {"op":"add","path":"/secondaryTiles/news/tags","value":"sport"},
           {"op":"remove","path":"/secondaryTiles/news/tags/news"},
           {"op":"replace","path":"/secondaryTiles/news/templates/t/body","value":"<c>$(x)</c>"},
           {"op":"add","path":"/secondaryTiles/news/templates/u","value":"{\\"body\\":\\"<d/>\\"}"},
           {"op":"remove","path":"/secondaryTiles/gone"},
           {"op":"add","path":"/secondaryTiles/new","value":"{\\"pushChannel\\":\\"\(Self.channel("w"))\\"}"}]
          """)
      #expect(patched.status == 200, "\(patched.text)")
      let second = try await read()
      #expect(Set(second.tiles.keys) == ["news", "new"])
      let changed = try #require(second.tiles["news"])
      #expect(changed.handle == Self.channel("n2") && changed.tags.tags == ["sport"])
      #expect(changed.templates["t"]?.template.body == "<c>$(x)</c>" && changed.templates["u"] != nil)

      // Azure lists what it makes of an installation as registrations.
      let rows = try await harness.request(.GET, "/orders/tags/$InstallationId:%7Bpc-1%7D/registrations", as: .full)
      #expect(rows.text.components(separatedBy: "<SecondaryTileName>news</SecondaryTileName>").count == 4)
      for (field, problem) in [
        (Self.channel("main"), "secondaryTiles.new.pushChannel must be a channel of its own"), ("x", "the value"),
      ] {
        let wrong = try await harness.request(
          .PATCH, path, as: .listen,
          body: #"[{"op":"replace","path":"/secondaryTiles/new/pushChannel","value":"\#(field)"}]"#)
        #expect(wrong.status == 400 && wrong.text.contains(problem), "\(wrong.text)")
      }
      #expect(try await read() == second)
      #expect(try await harness.request(.DELETE, path, as: .listen).status == 204)
      let rest = try await harness.request(.GET, "/orders/registrations", as: .full)
      #expect(!rest.text.contains("<entry"), "\(rest.text)")
    }
  }

  @Test func aRegistrationNamesItsSecondaryTile() async throws {
    let body = """
      <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><WindowsTemplateRegistrationDescription
      xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"><Tags>news</Tags>
      <ChannelUri>\(Self.channel("n"))</ChannelUri><SecondaryTileName>my tile</SecondaryTileName>
      <BodyTemplate>&lt;a&gt;$(x)&lt;/a&gt;</BodyTemplate></WindowsTemplateRegistrationDescription></content></entry>
      """
    try await AzureHarness.run { harness in
      let made = try await harness.request(.POST, "/orders/registrations", as: .listen, body: body)
      #expect(made.status == 200, "\(made.text)")
      let read = try await harness.request(
        .GET, "/orders/registrations?$filter=ChannelUri+eq+%27\(Self.channel("n").percentEncoded)%27", as: .listen)
      for text in [made.text, read.text] {
        #expect(
          text.contains(
            "<ChannelUri>\(Self.channel("n"))</ChannelUri><SecondaryTileName>my tile</SecondaryTileName>"
              + "<BodyTemplate>"),
          "\(text)")
      }
    }
  }
}
