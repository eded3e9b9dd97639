import FanfareCore
import Foundation
import Testing

@testable import Hooks

/// The content of events, and the choice of records.
@Suite struct HookEventTests {
  private static let send = SendID.random()

  static func record(
    _ send: SendID = send, hub: HubName = .default, state: StatusRecord.State = .settled, devices: [DeviceResult] = [],
    counts: OutcomeCounts = OutcomeCounts(), at time: UnixTime = UnixTime(milliseconds: 1_795_248_000_000)
  ) -> StatusRecord {
    StatusRecord(
      send: send, hub: hub, state: state, sender: "marked-sender", audience: .device(.fcm, handle: "marked-handle"),
      acceptedAt: time, settledAt: time, devices: devices, counts: counts,
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
  }

  static func device(_ outcome: DeviceResult.Outcome) -> DeviceResult {
    DeviceResult(
      registration: .random(), platform: .apns, outcome: outcome, reason: outcome == .delivered ? "" : "Unregistered",
      status: 200, attempts: 1)
  }

  @Test func eventIsACloudEventWithoutAudienceAndUser() throws {
    let devices = [Self.device(.delivered), Self.device(.deviceGone)]
    let bytes = HookEvent.batch([HookEvent(Self.record(devices: devices))])
    let batch = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [[String: Any]])
    let event = try #require(batch.first)
    #expect(batch.count == 1)
    #expect(event["specversion"] as? String == "1.0" && event["type"] as? String == "fanfare.outcome.v1")
    #expect(event["id"] as? String == "\(Self.send)/0" && event["subject"] as? String == "\(Self.send)")
    #expect(event["source"] as? String == "/fanfare/hubs/default")
    #expect((event["traceparent"] as? String)?.hasPrefix("00-4bf9") == true)
    let data = try #require(event["data"] as? [String: Any])
    #expect(data["state"] as? String == "settled" && data["send"] as? String == "\(Self.send)")
    #expect((data["devices"] as? [[String: Any]])?.count == 2)
    let counts = try #require(data["counts"] as? [String: [String: Int]])
    #expect(counts == ["apns": ["delivered": 1, "deviceGone": 1]])
    #expect(!String(decoding: bytes, as: UTF8.self).contains("marked"))
  }

  @Test func devicesBeyondTheLimitAreOnlyCounted() throws {
    let devices = (0..<HookEvent.maximumDevices + 7).map { _ in Self.device(.delivered) }
    let event = try #require(
      try JSONSerialization.jsonObject(with: Data(HookEvent(Self.record(devices: devices)).json)) as? [String: Any])
    let data = try #require(event["data"] as? [String: Any])
    #expect((data["devices"] as? [Any])?.count == HookEvent.maximumDevices && data["devicesOmitted"] as? Int == 7)
    #expect((data["counts"] as? [String: [String: Int]])?["apns"]?["delivered"] == devices.count)
  }

  @Test func hookChoosesItsRecords() throws {
    var hook = HookConfiguration(
      name: "audit", url: try #require(HookURL("https://example.com")), hubs: [.default])
    let good = Self.record(devices: [Self.device(.delivered)])
    let bad = Self.record(devices: [Self.device(.delivered), Self.device(.rejected)])
    let dead = Self.record(state: .deadLettered)
    var counts = OutcomeCounts()
    counts.add(3, to: OutcomeCounts.Kind(.fcm, .failed))
    let page = Self.record(counts: counts)
    let foreign = Self.record(hub: try #require(HubName("other")), devices: [Self.device(.rejected)])
    for (events, wanted) in [
      (HookConfiguration.Events.all, [true, true, true, true, false]), (.settled, [true, true, false, true, false]),
      (.failures, [false, true, true, true, false]),
    ] {
      hook.events = events
      #expect([good, bad, dead, page, foreign].map { hook.wants($0) } == wanted, "\(events)")
    }
  }
}
