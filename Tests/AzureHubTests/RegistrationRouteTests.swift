import FanfareCore
import Foundation
import FrontEnd
import NIOHTTP1
import Registry
import Support
import Testing

@testable import AzureHub

/// Registrations and installations over a real socket, as Azure's clients ask for them.
struct RegistrationRouteTests {
  private static let token = String(repeating: "0A", count: 32)
  private static let type = ("Content-Type", "application/atom+xml;type=entry;charset=utf-8")

  private static func apple(_ tags: String = "news", token: String = token) -> String {
    RegistrationDescriptionTests.entry("Apple", "<Tags>\(tags)</Tags><DeviceToken>\(token)</DeviceToken>")
  }

  private func entries(_ reply: AzureReply) throws -> [RegistrationDescription] {
    try XMLTree(Array(reply.text.utf8)[...]).children.filter { $0.name == "entry" }.map {
      try RegistrationDescription($0)
    }
  }

  @Test func idIsIssuedAndCompleted() async throws {
    try await AzureHarness.run { harness in
      let issued = try await harness.request(.POST, "/orders/registrationIDs/?api-version=2020-06", as: .listen)
      #expect(issued.status == 201)
      let location = try #require(issued["Location"])
      #expect(location.contains("/orders/registrationids/") && location.hasSuffix("?api-version=2020-06"))
      let id = try #require(location.split(separator: "?")[0].split(separator: "/").last.map(String.init))
      let path = "/orders/registrations/\(id)?api-version=2020-06"

      let written = try await harness.request(.PUT, path, as: .listen, headers: [Self.type], body: Self.apple())
      #expect(written.status == 200, "\(written.text)")
      #expect(written["Content-Location"] == "http://127.0.0.1:\(harness.port)\(path)")
      #expect(written["Content-Type"] == "application/atom+xml;type=entry;charset=utf-8")
      let tag = try #require(written["ETag"])
      #expect(tag.hasPrefix("W/\""))

      let read = try await harness.request(.GET, path, as: .listen)
      #expect(read.status == 200 && read["ETag"] == tag && read.text == written.text)
      let row = try #require(
        try await harness.registry.registration(RegistrationID(azure: id), hub: HubName("orders") ?? .default))
      #expect(row.handle == Self.token.lowercased() && row.tags.contains("news"))

      // Weak comparison, in the forms of all clients.
      for condition in [tag, String(tag.dropFirst(2)), tag.filter { $0 != "\"" }, "*"] {
        let again = try await harness.request(
          .PUT, path, as: .listen, headers: [Self.type, ("If-Match", condition)], body: Self.apple())
        #expect(again.status == 200, "\(condition): \(again.text)")
      }
      let changed = try await harness.request(
        .PUT, path, as: .listen, headers: [Self.type, ("If-Match", tag)], body: Self.apple("sport"))
      #expect(changed.status == 200 && changed["ETag"] != tag)
      let stale = try await harness.request(
        .PUT, path, as: .listen, headers: [Self.type, ("If-Match", tag)], body: Self.apple("art"))
      #expect(stale.status == 412 && stale.text.hasPrefix("<Error><Code>412</Code>"), "\(stale.text)")
      let kept = try await harness.request(.DELETE, path, as: .listen, headers: [("If-Match", tag)])
      #expect(kept.status == 412)
      let deleted = try await harness.request(.DELETE, path, as: .listen, headers: [("If-Match", "*")])
      #expect(deleted.status == 200 && deleted.text.isEmpty)
      for (method, status) in [(HTTPMethod.GET, 404), (.DELETE, 404)] {
        #expect(try await harness.request(method, path, as: .listen).status == status)
      }
      let absent = try await harness.request(
        .PUT, path, as: .listen, headers: [Self.type, ("If-Match", "*")], body: Self.apple())
      #expect(absent.status == 404)
    }
  }

  @Test func conditionThatDoesNotHoldChangesNothing() async throws {
    try await AzureHarness.run { harness in
      let path = "/orders/registrations/7-7-1"
      let first = try await harness.request(.PUT, path, as: .listen, headers: [Self.type], body: Self.apple())
      let tag = try #require(first["ETag"])
      // Without a condition the last writer wins.
      let second = try await harness.request(.PUT, path, as: .listen, headers: [Self.type], body: Self.apple("sport"))
      #expect(second.status == 200 && second["ETag"] != tag)
      for stale in [tag, "\"1\"", "W/\"1\"", "1, \(tag)"] {
        for method in [HTTPMethod.PUT, .DELETE] {
          let reply = try await harness.request(
            method, path, as: .listen, headers: [Self.type, ("If-Match", stale)],
            body: method == .PUT ? Self.apple("art") : "")
          #expect(reply.status == 412 && reply.text.hasPrefix("<Error><Code>412</Code>"), "\(stale): \(reply.text)")
        }
      }
      let kept = try await harness.request(.GET, path, as: .listen)
      #expect(kept["ETag"] == second["ETag"] && kept.text == second.text)
      // One of several holds.
      let list = "\"1\", \(try #require(second["ETag"]))"
      let removed = try await harness.request(.DELETE, path, as: .listen, headers: [("If-Match", list)])
      #expect(removed.status == 200)
    }
  }

  @Test(arguments: [
    ("Apple", "DeviceToken", token.lowercased(), token), ("Apple", "devicetoken", token, token),
    ("Gcm", "GcmRegistrationId", "it''s", "it's"), ("FcmV1", "FcmV1RegistrationId", "a:b", "a:b"),
  ])
  func registrationIsFoundByTheNameOfItsHandle(type: String, name: String, filter: String, handle: String) async throws
  {
    try await AzureHarness.run { harness in
      let element = type == "Apple" ? "DeviceToken" : "\(type)RegistrationId"
      for value in [handle, handle.replacing(handle.suffix(1), with: "0")] where type != "Apple" || value == handle {
        let created = try await harness.request(
          .POST, "/orders/registrations?api-version=2020-06", as: .listen, headers: [Self.type],
          body: RegistrationDescriptionTests.entry(type, "<\(element)>\(value)</\(element)>"))
        #expect(created.status == 200, "\(created.text)")
      }
      let query = "\(name) eq '\(filter)'".addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      let found = try await harness.request(.GET, "/orders/registrations?$filter=\(query)", as: .listen)
      #expect(found.status == 200, "\(found.text)")
      #expect(try entries(found).map(\.handle) == [handle], "\(found.text)")
    }
  }

  @Test func ofConcurrentUpdatesWithOneTagExactlyOneIsMade() async throws {
    try await AzureHarness.run { harness in
      let path = "/orders/registrations/\(RegistrationID.random())?api-version=2020-06"
      let written = try await harness.request(.PUT, path, as: .listen, headers: [Self.type], body: Self.apple())
      let tag = try #require(written["ETag"])
      let replies = try await withThrowingTaskGroup(of: AzureReply.self) { group in
        for number in 0..<8 {
          group.addTask {
            try await harness.request(
              .PUT, path, as: .listen, headers: [Self.type, ("If-Match", tag)], body: Self.apple("t\(number)"))
          }
        }
        return try await group.reduce(into: [AzureReply]()) { $0.append($1) }
      }
      #expect(replies.map(\.status).sorted() == [200] + Array(repeating: 412, count: 7))
      let read = try await harness.request(.GET, path, as: .listen)
      #expect(read.text == replies.first { $0.status == 200 }?.text)
    }
  }

  @Test func clientMayBringAnIDOfItsOwn() async throws {
    try await AzureHarness.run { harness in
      let path = "/orders/registrations/123-234-1?api-version=2014-09"
      let written = try await harness.request(
        .PUT, path, as: .listen, headers: [Self.type],
        body: RegistrationDescriptionTests.entry("Gcm", "<GcmRegistrationId>token:1</GcmRegistrationId>"))
      #expect(written.status == 200, "\(written.text)")
      let read = try await harness.request(.GET, path, as: .listen)
      #expect(read.text.contains("<RegistrationId>123-234-1</RegistrationId>"))
      #expect(read.text.contains("<GcmRegistrationDescription "))
      // .NET's client up to 4.1.1 asks for this version and does not know FcmV1.
      let newer = try await harness.request(
        .GET, "/orders/registrations/123-234-1?api-version=2020-06", as: .listen)
      #expect(newer.text.contains("<GcmRegistrationDescription "))
    }
  }

  @Test func kindThatWasRegisteredIsRead() async throws {
    try await AzureHarness.run { harness in
      for (number, kind) in ["Gcm", "FcmV1"].enumerated() {
        let handle = "<\(kind)RegistrationId>token:\(number)</\(kind)RegistrationId>"
        let template = #"<BodyTemplate>{"data":{"a":"$(a)"}}</BodyTemplate><TemplateName>t</TemplateName>"#
        for (type, elements) in [(kind, handle), ("\(kind)Template", handle + template)] {
          let reply = try await harness.request(
            .POST, "/orders/registrations?api-version=2020-06", as: .listen, headers: [Self.type],
            body: RegistrationDescriptionTests.entry(type, elements))
          #expect(reply.status == 200 && reply.text.contains("<\(type)RegistrationDescription "), "\(reply.text)")
        }
        let phone = try await harness.request(
          .PUT, "/orders/installations/phone-\(number)?api-version=2020-06", as: .listen,
          body:
            #"{"platform":"\#(kind)","pushChannel":"other:\#(number)","templates":{"t":{"body":"{\"data\":{\"a\":\"b\"}}"}}}"#
        )
        #expect(phone.status == 200, "\(phone.text)")
        let read = try await harness.request(
          .GET, "/orders/installations/phone-\(number)?api-version=2020-06", as: .listen)
        #expect(read.text.contains(#""platform":"\#(kind == "Gcm" ? "gcm" : "fcmV1")""#), "\(read.text)")
        let patched = try await harness.request(
          .PATCH, "/orders/installations/phone-\(number)", as: .listen,
          body: #"[{"op":"add","path":"/tags","value":"sport"}]"#)
        #expect(patched.status == 200, "\(patched.text)")
      }
      for (version, gcm, fcmV1) in [("2020-06", 4, 4), ("2016-07", 8, 0)] {
        let list = try await harness.request(.GET, "/orders/registrations?api-version=\(version)", as: .full)
        func count(_ kind: String) -> Int { list.text.components(separatedBy: "</\(kind)RegistrationId>").count - 1 }
        #expect((count("Gcm"), count("FcmV1")) == (gcm, fcmV1), "\(version): \(list.text)")
      }
    }
  }

  /// A client that removes all that it has listed.
  @Test func registrationsOfAnInstallationAreRemovedOneByOne() async throws {
    try await AzureHarness.run { harness in
      for (isReversed, id) in [(false, "phone-1"), (true, "phone-2")] {
        let made = try await harness.request(
          .PUT, "/orders/installations/\(id)", as: .listen,
          body: InstallationTests.body.replacing("phone-1", with: id))
        #expect(made.status == 200, "\(made.text)")
        let list = try await harness.request(.GET, "/orders/registrations?api-version=2020-06", as: .full)
        let entries = try entries(list)
        #expect(entries.count == 3 && entries.map { $0.template == nil } == [false, false, true], "natives are last")
        for entry in isReversed ? entries.reversed() : entries {
          let path = "/orders/registrations/\(try #require(entry.id))"
          let removed = try await harness.request(.DELETE, path, as: .listen, headers: [("If-Match", "*")])
          #expect(removed.status == 200, "\(removed.text)")
        }
        let rest = try await harness.request(.GET, "/orders/registrations", as: .full)
        #expect(try self.entries(rest).isEmpty)
      }
      let unknown = try await harness.request(.DELETE, "/orders/registrations/\(RegistrationID.random())", as: .listen)
      #expect(unknown.status == 404)
    }
  }

  /// The second writer has read A, and must not overwrite what happened since.
  @Test func tagDoesNotComeBackWithTheContent() async throws {
    try await AzureHarness.run { harness in
      let path = "/orders/registrations/7-7-1"
      var tags: [String] = []
      for content in ["a", "b", "a"] {
        let reply = try await harness.request(.PUT, path, as: .listen, headers: [Self.type], body: Self.apple(content))
        tags.append(try #require(reply["ETag"]))
      }
      #expect(Set(tags).count == 3)
      let stale = try await harness.request(
        .PUT, path, as: .listen, headers: [Self.type, ("If-Match", tags[0])], body: Self.apple("c"))
      #expect(stale.status == 412)
      let present = try await harness.request(
        .PUT, path, as: .listen, headers: [Self.type, ("If-Match", tags[2])], body: Self.apple("c"))
      #expect(present.status == 200)
    }
  }

  @Test func channelIsFoundAlsoWhenItIsEncodedTwice() async throws {
    try await AzureHarness.run { harness in
      let channel = RegistrationDescriptionTests.channel
      let made = try await harness.request(
        .POST, "/orders/registrations", as: .listen, headers: [Self.type],
        body: RegistrationDescriptionTests.entry(
          "Windows", "<ChannelUri>\(channel.replacing("&", with: "&amp;"))</ChannelUri>"))
      #expect(made.status == 200, "\(made.text)")
      for value in [channel.percentEncoded, channel.percentEncoded.percentEncoded] {
        let found = try await harness.request(
          .GET, "/orders/registrations?$filter=ChannelUri+eq+%27\(value)%27", as: .listen)
        #expect(try entries(found).map(\.handle) == [channel], "\(found.text)")
      }
    }
  }

  @Test func skippedRegistrationsAreLeftOut() async throws {
    try await AzureHarness.run { harness in
      for number in 0..<5 {
        _ = try await harness.request(
          .POST, "/orders/registrations", as: .listen, headers: [Self.type],
          body: Self.apple(token: String(format: "%064x", number)))
      }
      func ids(_ query: String) async throws -> [String] {
        let reply = try await harness.request(.GET, "/orders/registrations?\(query)", as: .full)
        #expect(reply.status == 200, "\(reply.text)")
        return try entries(reply).compactMap(\.id)
      }
      let all = try await ids("$top=100")
      for skip in 0...6 {
        #expect(try await ids("$skip=\(skip)") == Array(all.dropFirst(skip)))
        #expect(try await ids("$skip=\(skip)&$top=2") == Array(all.dropFirst(skip).prefix(2)))
        #expect(
          try await ids("$skip=\(skip)&$filter=ChannelUri+eq+%27\(String(format: "%064x", 3))%27").count
            == (skip == 0 ? 1 : 0))
      }
      let page = try await harness.request(.GET, "/orders/registrations?$skip=1&$top=2", as: .full)
      let token = try #require(page["x-ms-continuationtoken"])
      #expect(try await ids("$skip=1&$top=2&continuationtoken=\(token)") == Array(all[3...]))
      let wrong = try await harness.request(.GET, "/orders/registrations?$skip=10001", as: .full)
      #expect(wrong.status == 400 && wrong.text.contains("$skip must be a number from 0 to 10000"), "\(wrong.text)")
    }
  }

  @Test(arguments: RegistrationDescriptionTests.examples)
  func everyKindIsCreatedAndFoundByItsHandle(example: RegistrationDescriptionTests.Example) async throws {
    try await AzureHarness.run { harness in
      let created = try await harness.request(
        .POST, "/orders/registrations?api-version=2020-06", as: .listen, headers: [Self.type],
        body: RegistrationDescriptionTests.entry(example.type, example.elements))
      #expect(created.status == 200, "\(created.text)")
      #expect(created.text.contains("<\(example.type)RegistrationDescription "))

      let handle = example.handle.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      let found = try await harness.request(
        .GET, "/orders/registrations/?$filter=ChannelUri+eq+%27\(handle)%27&$top=100&api-version=2020-06",
        as: .listen)
      #expect(found.status == 200, "\(found.text)")
      #expect(found["Content-Type"] == "application/atom+xml; type=feed; charset=utf-8")
      let entries = try entries(found)
      #expect(entries.count == 1 && entries.first?.template == example.template)
      #expect(entries.first?.tags.user == "alice" && entries.first?.tags.tags == ["news"])

      let tagged = try await harness.request(
        .GET, "/orders/tags/$UserId:%7Balice%7D/registrations?api-version=2020-06", as: .full)
      #expect(try self.entries(tagged).count == 1)
      let refused = try await harness.request(.GET, "/orders/tags/news/registrations", as: .listen)
      #expect(refused.status == 401, "\(refused.text)")
    }
  }

  @Test func listsArePagedByTokens() async throws {
    try await AzureHarness.run { harness in
      for number in 0..<7 {
        let reply = try await harness.request(
          .POST, "/orders/registrations", as: .listen, headers: [Self.type],
          body: Self.apple(token: String(format: "%064x", number)))
        #expect(reply.status == 200, "\(reply.text)")
      }
      for list in ["registrations", "tags/news/registrations"] {
        var (ids, token, pages): (Set<String>, String?, Int) = ([], nil, 0)
        repeat {
          let page = try await harness.request(
            .GET, "/orders/\(list)?$top=3&api-version=2020-06" + (token.map { "&ContinuationToken=\($0)" } ?? ""),
            as: .full)
          #expect(page.status == 200, "\(page.text)")
          ids.formUnion(try entries(page).compactMap(\.id))
          (token, pages) = (page["x-ms-continuationtoken"], pages + 1)
        } while token != nil && pages < 5
        #expect(ids.count == 7 && pages == 3)
      }
      let refused = try await harness.request(.GET, "/orders/registrations", as: .listen)
      #expect(refused.status == 401, "\(refused.text)")
      let wrong = try await harness.request(.GET, "/orders/registrations?continuationtoken=x", as: .full)
      #expect(wrong.status == 400)
    }
  }

  @Test func wrongEntryIsRefusedInAzuresForm() async throws {
    try await AzureHarness.run { harness in
      for (body, detail) in [
        ("<entry", "the XML must have"),
        (RegistrationDescriptionTests.entry("Mpns", ""), "MpnsRegistrationDescription"),
      ] {
        let reply = try await harness.request(
          .POST, "/orders/registrations", as: .listen, headers: [Self.type], body: body)
        #expect(
          reply.status == 400 && reply.text.hasPrefix("<Error><Code>400</Code><Detail>\(detail)"), "\(reply.text)")
      }
    }
  }
}
