import FanfareCore
import Foundation
import NIOHTTP1
import Testing

@testable import AzureHub

@Suite struct SendTests {
  @Test func aNativeSendIsProducedForItsTags() async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/Orders/Messages/?API-Version=2020-06",
        headers: [
          ("servicebusnotification-format", "Apple"), ("ServiceBusNotification-Tags", "(news && !muted) || vip"),
          ("apns-push-type", "alert"), ("apns-priority", "5"), ("TrackingId", "0d3c7a52-client"),
        ], body: #"{"aps":{"alert":"hi"}}"#)
      #expect(reply.status == 201, "\(reply.text)")
      #expect(reply.text.isEmpty)
      #expect(reply["TrackingId"] == "0d3c7a52-client")
      let send = try #require(try harness.sink.sends().first)
      #expect(
        reply["Location"] == "http://127.0.0.1:\(harness.port)/Orders/messages/\(send.id)?api-version=2020-06")
      #expect(reply.send == send.id)
      #expect(send.hub.rawValue == "orders")
      #expect(send.audience == .expression(try TagExpression("(news && !muted) || vip")))
      #expect(send.platforms == PlatformSet(.apns))
      #expect(send.content.apns == Array(#"{"aps":{"alert":"hi"}}"#.utf8))
      #expect(send.content.headers == ["apns-push-type": "alert", "apns-priority": "5"])
    }
  }

  @Test(arguments: [
    ("", Audience.everyone), ("news", .tag("news")), ("$UserId:{zoë}", .user("zoë")), ("$UserId:bob", .user("bob")),
    ("username:bob", .user("bob")), ("$InstallationId:{a-1}", .tag("installation:a-1")),
    ("b || a", .tags(["a", "b"])), ("(a||$InstallationId:{x})", .tags(["a", "installation:x"])),
    ("!$userid:{bob}", .expression(.not(.tag("username:bob")))),
  ])
  func tagsAreTranslated(text: String, audience: Audience) throws {
    #expect(try AzureTag.audience(of: text) == audience)
  }

  @Test func routesAreFoundByPrefixAndHost() async throws {
    try await AzureHarness.run({ setup in
      setup.configuration.prefix = ["anh", "v1"]
      setup.configuration.aliases = ["my_orders": HubName("orders") ?? .default]
    }) { harness in
      let headers = [("ServiceBusNotification-Format", "gcm")]
      let found = try await harness.request(
        .POST, "/anh/V1/My_Orders/messages", as: .full.with { $0.resource = .host }, headers: headers,
        body: #"{"data":{"a":"b"}}"#)
      #expect(found.status == 201, "\(found.text)")
      #expect(try harness.sink.sends().map(\.hub.rawValue) == ["orders"])
      // Without the prefix, and without a token, it is the front end's own business.
      let own = try await harness.request(.POST, "/orders/messages", as: nil, headers: headers, body: "{}")
      #expect(own["Content-Type"] == "application/problem+json")
    }
  }
}
