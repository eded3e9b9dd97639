import FanfareCore
import Foundation
import NIOHTTP1
import Registry
import Support
import Testing

@testable import AzureHub

@Suite struct TelemetryTests {
  private static func report(
    _ id: SendID, _ hub: HubName, _ state: SendReport.State, devices: [DeviceResult] = [], audience: String = "news"
  ) -> SendReport {
    let moment = UnixTime(milliseconds: 1_893_553_445_000)
    return SendReport(
      id: id, hub: hub, state: state, sender: "sas/Send", audience: audience, acceptedAt: moment,
      settledAt: state == .accepted ? nil : moment + .seconds(2), counts: OutcomeCounts(devices).byPlatform,
      failures: FailureCounts(devices), devices: devices, times: SendTimes(consumed: moment + .seconds(1)))
  }

  private static func device(
    _ outcome: DeviceResult.Outcome, _ reason: String = "", platform: Platform = .apns, id: RegistrationID = .random()
  ) -> DeviceResult {
    DeviceResult(
      registration: id, platform: platform, outcome: outcome, reason: reason, status: 200, attempts: 1)
  }

  @Test func detailsCountTheOutcomes() async throws {
    let devices = [
      Self.device(.delivered), Self.device(.delivered), Self.device(.deviceGone, "Unregistered"),
      Self.device(.deviceGone, "BadDeviceToken"), Self.device(.rejected, "PayloadTooLarge"),
      Self.device(.delivered, platform: .fcm), Self.device(.failed, "TooManyRequests", platform: .wns),
    ]
    try await AzureHarness.run({ setup in
      setup.history.answer = { Self.report($0, $1, .settled, devices: devices) }
    }) { harness in
      let id = SendID.random()
      let reply = try await harness.request(.GET, "/orders/messages/\(id)?api-version=2016-07")
      #expect(reply.status == 200)
      #expect(reply["Content-Type"] == "application/xml; charset=utf-8")
      func outcome(_ name: String, _ count: Int) -> String {
        "<Outcome><Name>\(name)</Name><Count>\(count)</Count></Outcome>"
      }
      let url = try #require(reply.text.firstMatch(of: /<PnsErrorDetailsUri>(.*)<\/PnsErrorDetailsUri>/)?.output.1)
      #expect(
        reply.text
          == #"<NotificationDetails xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" "#
          + #"xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><NotificationId>\#(id)</NotificationId>"#
          + "<Location>http://127.0.0.1:\(harness.port)/orders/messages/\(id)?api-version=2016-07</Location>"
          + "<State>Completed</State><EnqueueTime>2030-01-02T03:04:05.000Z</EnqueueTime>"
          + "<StartTime>2030-01-02T03:04:06.000Z</StartTime><EndTime>2030-01-02T03:04:07.000Z</EndTime>"
          + "<Tags>news</Tags><TargetPlatforms>apple,gcm,windows</TargetPlatforms><ApnsOutcomeCounts>"
          + outcome("BadChannel", 1) + outcome("ExpiredChannel", 1) + outcome("InvalidNotificationSize", 1)
          + outcome("Success", 2) + "</ApnsOutcomeCounts><WnsOutcomeCounts>" + outcome("Throttled", 1)
          + "</WnsOutcomeCounts><GcmOutcomeCounts>" + outcome("Success", 1) + "</GcmOutcomeCounts>"
          + "<PnsErrorDetailsUri>\(url)</PnsErrorDetailsUri></NotificationDetails>")
      // The URL stands for a token, and lists the devices that did not get the push.
      let path = String(url.dropFirst("http://127.0.0.1:\(harness.port)".count)).replacing("&amp;", with: "&")
      let errors = try await harness.request(.GET, path, as: nil)
      #expect(errors.status == 200)
      let lines = errors.text.split(separator: "\n")
      #expect(lines.count == 4, "\(errors.text)")
      #expect(
        lines.contains {
          $0.contains(
            "<RegistrationId>\(devices[2].registration)</RegistrationId><Platform>apple</Platform>"
              + "<NotificationSystemError>ExpiredChannel</NotificationSystemError><Reason>Unregistered</Reason>")
        })
      #expect(try await harness.request(.GET, path.replacing("sig=", with: "sig=A"), as: nil).status == 401)

      let newer = try await harness.request(.GET, "/orders/messages/\(id)?api-version=2020-06")
      #expect(newer.text.contains("<TargetPlatforms>apple,fcmv1,windows</TargetPlatforms>"))
      #expect(newer.text.contains("<FcmV1OutcomeCounts>\(outcome("Success", 1))</FcmV1OutcomeCounts>"))
      #expect(newer.text.contains("<GcmOutcomeCounts>\(outcome("Success", 1))</GcmOutcomeCounts>"))
    }
  }

  @Test func outcomesAtFirebaseAreCountedByKind() async throws {
    let ids = (0..<4).map { _ in RegistrationID.random() }
    let devices =
      ids.prefix(3).map { Self.device(.delivered, platform: .fcm, id: $0) }
      + [Self.device(.failed, "QUOTA_EXCEEDED", platform: .fcm, id: ids[3])]
    try await AzureHarness.run({ setup in
      setup.history.answer = { Self.report($0, $1, .settled, devices: devices) }
    }) { harness in
      func details(_ version: String) async throws -> String {
        try await harness.request(.GET, "/orders/messages/\(SendID.random())?api-version=\(version)").text
      }
      func outcomes(_ name: String, _ counts: [(String, Int)]) -> String {
        "<\(name)OutcomeCounts>"
          + counts.map { "<Outcome><Name>\($0)</Name><Count>\($1)</Count></Outcome>" }.joined()
          + "</\(name)OutcomeCounts>"
      }
      // Nothing is known of the devices.
      let unknown = try await details("2020-06")
      #expect(unknown.contains("<TargetPlatforms>fcmv1</TargetPlatforms>"), "\(unknown)")
      #expect(unknown.contains(outcomes("Gcm", [("Success", 3), ("Throttled", 1)])), "\(unknown)")
      #expect(unknown.contains(outcomes("FcmV1", [("Success", 3), ("Throttled", 1)])), "\(unknown)")

      for (index, kind) in ["Gcm", "Gcm", "FcmV1", "Gcm"].enumerated() {
        let reply = try await harness.request(
          .PUT, "/orders/registrations/\(ids[index])", as: .listen,
          body: RegistrationDescriptionTests.entry(kind, "<\(kind)RegistrationId>t:\(index)</\(kind)RegistrationId>"))
        #expect(reply.status == 200, "\(reply.text)")
      }
      let newer = try await details("2020-06")
      #expect(newer.contains("<TargetPlatforms>gcm,fcmv1</TargetPlatforms>"), "\(newer)")
      #expect(newer.contains(outcomes("Gcm", [("Success", 2), ("Throttled", 1)])), "\(newer)")
      #expect(newer.contains(outcomes("FcmV1", [("Success", 1)])), "\(newer)")
      let older = try await details("2016-07")
      #expect(older.contains(outcomes("Gcm", [("Success", 3), ("Throttled", 1)])) && !older.contains("FcmV1"))

      // A device that is gone counts as the others.
      for id in [ids[2], ids[3]] {
        #expect(try await harness.request(.DELETE, "/orders/registrations/\(id)", as: .listen).status == 200)
      }
      let rest = try await details("2020-06")
      #expect(rest.contains(outcomes("Gcm", [("Success", 3), ("Throttled", 1)])) && !rest.contains("FcmV1"), "\(rest)")
    }
  }

  @Test(arguments: [
    (SendReport.State.accepted, "Processing"), (.settled, "Completed"), (.noTarget, "NoTargetFound"),
    (.expired, "Abandoned"), (.deadLettered, "Abandoned"), (.cancelled, "Canceled"),
  ])
  func statesHaveAzuresNames(state: SendReport.State, name: String) async throws {
    try await AzureHarness.run({ setup in setup.history.answer = { Self.report($0, $1, state) } }) { harness in
      let reply = try await harness.request(.GET, "/orders/messages/\(SendID.random())")
      #expect(reply.text.contains("<State>\(name)</State>"), "\(reply.text)")
    }
  }

  @Test func aSendIsFoundBeforeItsReportIsWritten() async throws {
    try await AzureHarness.run { harness in
      let sent = try await harness.request(
        .POST, "/orders/messages", headers: [("ServiceBusNotification-Format", "apple")], body: "{}")
      let location = try #require(sent["Location"])
      let path = String(location.dropFirst("http://127.0.0.1:\(harness.port)".count))
      let early = try await harness.request(.GET, path)
      #expect(early.status == 200 && early.text.contains("<State>Enqueued</State>"), "\(early.text)")
      harness.clock.advance(by: TelemetryRoutes.lag)
      let late = try await harness.request(.GET, path)
      #expect(late.status == 404)
      let unknown = try await harness.request(.GET, "/orders/messages/3d1b-20170117-13-1")
      #expect(unknown.status == 404 && unknown.text.contains("<Code>404</Code>"))
    }
  }

  @Test func aBatchIsReportedAsOneNotification() async throws {
    let id = NotificationID(.random(), count: 3)
    let last = id.sends[2]
    try await AzureHarness.run({ setup in
      setup.history.answer = { send, hub in
        send == last
          ? Self.report(send, hub, .accepted, audience: "device/apns")
          : Self.report(send, hub, .settled, devices: [Self.device(.delivered)], audience: "device/apns")
      }
    }) { harness in
      let reply = try await harness.request(.GET, "/orders/messages/\(id)")
      #expect(reply.text.contains("<State>Processing</State>"), "\(reply.text)")
      #expect(reply.text.contains("<Name>Success</Name><Count>2</Count>"))
      #expect(!reply.text.contains("EndTime"))
    }
  }

  @Test func aTestSendIsAnsweredWithTheResultOfEachDevice() async throws {
    let gone = RegistrationID.random()
    let devices = [Self.device(.delivered), Self.device(.deviceGone, "Unregistered", id: gone)]
    try await AzureHarness.run({ setup in
      setup.history.answer = { Self.report($0, $1, .settled, devices: devices) }
    }) { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages?api-version=2020-06&test&direct",
        headers: [("ServiceBusNotification-Format", "apple"), ("ServiceBusNotification-DeviceHandle", "0a0b")],
        body: "{}")
      #expect(reply.status == 201)
      #expect(reply.send == (try harness.sink.sends().first?.id))
      #expect(
        reply.text.contains("<Success>1</Success><Failure>1</Failure><Results><RegistrationResult>"), "\(reply.text)")
      #expect(
        reply.text.contains(
          "<RegistrationResult><ApplicationPlatform>apple</ApplicationPlatform><PnsHandle>0a0b</PnsHandle>"
            + "<RegistrationId>\(gone)</RegistrationId><Outcome>The Push Notification System handle for the "
            + "registration is invalid</Outcome></RegistrationResult>"))
    }
  }

  @Test func aTestSendNamesDevicesAsTheirRegistrations() async throws {
    let ids = [RegistrationID.random(), .random()]
    let devices = [Self.device(.delivered, id: ids[0]), Self.device(.delivered, platform: .fcm, id: ids[1])]
    try await AzureHarness.run({ setup in
      setup.history.answer = { Self.report($0, $1, .settled, devices: devices) }
    }) { harness in
      for (id, kind, element, handle) in [
        (ids[0], "Apple", "DeviceToken", "0A0B"), (ids[1], "Gcm", "GcmRegistrationId", "t:1"),
      ] {
        let made = try await harness.request(
          .PUT, "/orders/registrations/\(id)", as: .listen,
          body: RegistrationDescriptionTests.entry(kind, "<\(element)>\(handle)</\(element)>"))
        #expect(made.status == 200, "\(made.text)")
      }
      let reply = try await harness.request(
        .POST, "/orders/messages?test", headers: [("ServiceBusNotification-Format", "template")], body: "{}")
      for (platform, handle) in [("apple", "0A0B"), ("gcm", "t:1")] {
        #expect(
          reply.text.contains("<ApplicationPlatform>\(platform)</ApplicationPlatform><PnsHandle>\(handle)</PnsHandle>"),
          "\(reply.text)")
      }
    }
  }

  /// The send is accepted; a client would send it again after an error.
  @Test func aTestSendIsAnsweredAlsoWithoutAHistory() async throws {
    try await AzureHarness.run({ setup in setup.history.isAway = true }) { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages?test", headers: [("ServiceBusNotification-Format", "apple")], body: "{}")
      #expect(reply.status == 201 && reply.text.contains("<Success>0</Success>"), "\(reply.text)")
      #expect(try harness.sink.sends().count == 1)
    }
  }

  @Test func hubsAreDescribedButNotChanged() async throws {
    try await AzureHarness.run { harness in
      let hub = try await harness.request(.GET, "/Orders/?api-version=2020-06", as: .full)
      #expect(hub.status == 200)
      #expect(hub.text.contains(#"<title type="text">Orders</title>"#), "\(hub.text)")
      #expect(hub.text.contains("<RegistrationTtl>P10675199DT2H48M5.4775807S</RegistrationTtl>"))
      let change = try await harness.request(.PUT, "/orders", as: .full, headers: [("If-Match", "*")], body: "<entry/>")
      #expect(change.status == 400 && change.text.contains("configuration"))
      let list = try await harness.request(.GET, "/$Resources/NotificationHubs/?$skip=0&$top=100", as: .root)
      #expect(list.status == 200 && list.text.contains("/orders</id>") && list.text.contains("/default</id>"))
      // The rules of one hub do not show the others, and Send is not Manage.
      let others = try await harness.request(.GET, "/$Resources/NotificationHubs", as: .full)
      #expect(others.status == 401)
      let lesser = try await harness.request(.GET, "/orders", as: .send)
      #expect(lesser.status == 401 && lesser.text.contains("Manage claim is required for this operation.."))
      #expect(lesser.text.hasPrefix("<Error><Code>401</Code>"))
    }
  }

  @Test func namespaceAnswersAsAzures() async throws {
    try await AzureHarness.run({ $0.configuration.aliases["shop"] = HubName("orders") }) { harness in
      // A hub that does not exist, for a rule of all hubs; those of one hub are not told.
      for (rule, status) in [(AzureToken.root, 404), (.full, 401)] {
        for (method, path) in [(HTTPMethod.GET, "/unknown"), (.POST, "/unknown/messages"), (.DELETE, "/unknown")] {
          let reply = try await harness.request(
            method, path, as: rule, headers: [("ServiceBusNotification-Format", "apple")], body: "{}")
          #expect(reply.status == status, "\(method) \(path): \(reply.text)")
          #expect(reply.text.hasPrefix("<Error><Code>\(status)</Code>"), "\(reply.text)")
        }
      }
      let body = "<entry/>"
      let new = try await harness.request(.PUT, "/unknown", as: .root, body: body)
      #expect(new.status == 400 && new.text.contains("Hubs and their credentials are in the configuration"))
      let existing = try await harness.request(.PUT, "/orders", as: .full, body: body)
      #expect(existing.status == 409 && existing.text.contains("<Code>409</Code><Detail>SubCode=40900. "))
      for path in ["/", "/?api-version=2020-06"] {
        let list = try await harness.request(.GET, path, as: .root)
        #expect(list.status == 200 && list.text.contains("/orders</id>") && list.text.contains("/default</id>"))
        #expect(list["Content-Type"]?.contains("type=feed") == true)
        #expect(try await harness.request(.GET, path, as: .full).status == 401)
      }
      #expect(try await harness.request(.GET, "/", as: nil).status != 401, "the root is the front end's")
      let named = try await harness.request(.GET, "/Shop", as: .root)
      #expect(named.status == 200 && named.text.contains(#"<title type="text">Shop</title>"#), "\(named.text)")
      #expect(named.text.contains("/Shop</id>"), "\(named.text)")
    }
  }

  @Test func anUnknownMethodOrPathIsRefused() async throws {
    try await AzureHarness.run { harness in
      let method = try await harness.request(.PATCH, "/orders/messages")
      #expect(method.status == 405 && method["Allow"] == "POST")
      let path = try await harness.request(.GET, "/orders/nothing/there")
      #expect(path.status == 404 && path.text.contains("No service is hosted at the specified address.."))
    }
  }
}
