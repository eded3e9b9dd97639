import FanfareCore
import FrontEnd
import NIOHTTP1
import Testing

@testable import AzureHub

/// What Fanfare does not have is refused by name, in Azure's form, and does nothing.
struct RefusalTests {
  @Test(arguments: ["windowsphone", "adm", "baidu", "browser", "xiaomi", "NokiaX"])
  func sendsToOtherServicesAreRefusedByName(format: String) async throws {
    try await AzureHarness.run { harness in
      for path in ["messages", "messages?direct", "messages?test", "schedulednotifications"] {
        let reply = try await harness.request(
          .POST, "/orders/\(path)",
          headers: [
            ("ServiceBusNotification-Format", format),
            path == "messages?direct"
              ? ("ServiceBusNotification-DeviceHandle", "0a")
              : ("ServiceBusNotification-ScheduleTime", "2099-01-02T03:04:05"),
          ], body: "{}")
        #expect(reply.status == 400 && reply.text.hasPrefix("<Error><Code>400</Code>"), "\(path): \(reply.text)")
        #expect(reply.text.contains(format.lowercased()), "\(path): \(reply.text)")
      }
      #expect(try harness.sink.sends().isEmpty)
    }
  }

  @Test func bodyThatIsTooLargeIsRefused() async throws {
    try await AzureHarness.run { harness in
      let text = String(repeating: "x", count: FrontEndConfiguration().maximumBodySize)
      for path in ["/orders/messages", "/orders/schedulednotifications", "/orders/registrations"] {
        let reply = try await harness.request(
          .POST, path, as: .full,
          headers: [
            ("ServiceBusNotification-Format", "apple"), ("ServiceBusNotification-ScheduleTime", "2099-01-02T03:04:05"),
          ], body: #"{"aps":{"alert":"\#(text)"}}"#)
        #expect(reply.status == 413 && reply.text.hasPrefix("<Error><Code>413</Code>"), "\(path): \(reply.text)")
      }
      #expect(try harness.sink.sends().isEmpty)
    }
  }

  @Test func hubIsNotDeletedByRequest() async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(.DELETE, "/orders?api-version=2020-06", as: .full)
      #expect(reply.status == 400 && reply.text.contains("configuration"), "\(reply.text)")
      #expect(try await harness.request(.GET, "/orders", as: .full).status == 200)
    }
  }

  @Test func createdRegistrationIsNamedByTheAnswer() async throws {
    try await AzureHarness.run { harness in
      let created = try await harness.request(
        .POST, "/orders/registrations?api-version=2015-01", as: .listen,
        body: RegistrationDescriptionTests.entry("Apple", "<DeviceToken>0A0B</DeviceToken>"))
      #expect(created.status == 200, "\(created.text)")
      let location = try #require(created["Content-Location"])
      let path = String(
        location[(location.firstRange(of: "/orders/registrations/")?.lowerBound ?? location.endIndex)...])
      #expect(path.hasSuffix("?api-version=2015-01"), "\(location)")
      let read = try await harness.request(.GET, path, as: .listen)
      #expect(read.status == 200 && read.text == created.text && read["ETag"] == created["ETag"])
    }
  }

  @Test func deprecatedHeadersOfApplesServiceArePassedOn() async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages", headers: [("ServiceBusNotification-Format", "apple"), ("X-Apns-Priority", "5")],
        body: #"{"aps":{}}"#)
      #expect(reply.status == 201, "\(reply.text)")
      #expect(try harness.sink.sends().first?.content.headers == ["apns-priority": "5"])
    }
  }
}
