import FanfareCore
import Foundation
import NIOHTTP1
import Registry
import Support
import Testing

@testable import AzureHub

@Suite struct ScheduleTests {
  @Test(arguments: [
    ("2030-01-02T03:04:05", 1_893_553_445), ("2030-01-02T05:04:05+02:00", 1_893_553_445),
    ("2030-01-02'T'03:04:05", 1_893_553_445), ("2030-01-02T03:04:05.1234567Z", 1_893_553_445),
    ("01/02/2030 03:04:05", 1_893_553_445), ("1/2/2030 3:04:05 PM", 1_893_596_645),
    ("1/2/2030 12:04:05 AM", 1_893_542_645),
  ])
  func timesAreReadInTheFormsOfAllClients(text: String, seconds: Int64) {
    #expect(AzureTime.read(text)?.seconds == seconds)
  }

  @Test(arguments: ["", "tomorrow", "2030-13-01T00:00:00", "01/02/30 03:04:05", "1/2/2030", "1/2/2030 13:00:00 PM"])
  func otherTextsAreNoTimes(text: String) { #expect(AzureTime.read(text) == nil) }

  @Test func timesInErrorsHaveTwelveHours() {
    #expect(AzureTime.invariant(UnixTime(milliseconds: 1_893_553_445_000)) == "1/2/2030 3:04:05 AM")
    #expect(AzureTime.invariant(UnixTime(milliseconds: 1_893_596_645_000)) == "1/2/2030 3:04:05 PM")
  }

  @Test func aSendIsHeldUntilItsTimeAndCanBeCancelled() async throws {
    try await AzureHarness.run { harness in
      let due = harness.clock.now() + .seconds(3600)
      let headers = [
        ("ServiceBusNotification-Format", "apple"), ("ServiceBusNotification-Tags", "news"),
        ("ServiceBusNotification-ScheduleTime", due.description),
      ]
      let reply = try await harness.request(.POST, "/orders/schedulednotifications", headers: headers, body: "{}")
      #expect(reply.status == 201, "\(reply.text)")
      let id = try #require(reply.send)
      #expect(reply["Location"]?.contains("/orders/schedulednotifications/\(id)?") == true)
      #expect(try harness.sink.sends().isEmpty)
      let orders = try #require(HubName("orders"))
      let held = try #require(try await harness.registry.scheduled(id, hub: orders))
      #expect(held.due == due && held.send.audience == .tag("news"))
      let details = try await harness.request(.GET, "/orders/messages/\(id)")
      #expect(details.status == 200 && details.text.contains("<State>Scheduled</State>"), "\(details.text)")
      // Of another hub it is not known.
      let other = try await harness.request(.DELETE, "/default/schedulednotifications/\(id)", as: .root)
      #expect(other.status == 404)
      let cancelled = try await harness.request(.DELETE, "/orders/schedulednotifications/\(id)")
      #expect(cancelled.status == 200, "\(cancelled.text)")
      #expect(try await harness.registry.scheduled(id, hub: orders)?.state == .cancelled)
      let unknown = try await harness.request(.DELETE, "/orders/schedulednotifications/\(SendID.random())")
      #expect(unknown.status == 404)
    }
  }

  @Test(arguments: [nil, "soon"])
  func aScheduledSendNeedsATime(time: String?) async throws {
    try await AzureHarness.run { harness in
      var headers = [("ServiceBusNotification-Format", "apple")]
      if let time { headers.append(("ServiceBusNotification-ScheduleTime", time)) }
      let reply = try await harness.request(.POST, "/orders/schedulednotifications", headers: headers, body: "{}")
      #expect(reply.status == 400 && reply.text.contains("ServiceBusNotification-ScheduleTime"))
    }
  }
}
