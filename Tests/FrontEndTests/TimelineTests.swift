import FanfareCore
import Testing

/// The way of a send, as `GET /api/sends/{id}` tells it.
@Suite(.timeLimit(.minutes(2))) struct TimelineTests {
  private static let time = UnixTime(milliseconds: 1_795_248_000_000)
  private static let times = SendTimes(
    consumed: time + .milliseconds(4), lookedUp: time + .milliseconds(6), pushed: time + .milliseconds(6),
    answered: time + .milliseconds(90))
  private let id = SendID.random()

  private static func device(_ platform: Platform, pushed: Int? = nil, answered: Int? = nil) -> DeviceResult {
    DeviceResult(
      registration: .random(), platform: platform, outcome: .delivered, reason: "", status: 200, attempts: 2,
      pushedAt: pushed.map { time + .milliseconds($0) }, answeredAt: answered.map { time + .milliseconds($0) })
  }

  /// The events as `event milliseconds platform`, and the devices of the answer.
  private func timeline(
    _ devices: [DeviceResult]?, _ times: SendTimes = times, settledAfter: Int? = 100
  ) async throws -> (events: [String], devices: [JSON]) {
    let report = SendReport(
      id: id, hub: .default, state: settledAfter == nil ? .accepted : .settled, sender: "alice", acceptedAt: Self.time,
      settledAt: settledAfter.map { Self.time + .milliseconds($0) }, counts: [:], devices: devices, times: times)
    var found: (events: [String], devices: [JSON]) = ([], [])
    try await Harness.run({ $0.history = ScriptedHistory(reports: [report]) }) { app in
      let answer = try await app.request(.get, "/api/sends/\(id)").json
      found.devices = answer["devices"]?.elements ?? []
      found.events = try #require(answer["timeline"]?.elements).map { event in
        let at = try #require(event["at"]?.text.flatMap { UnixTime($0) })
        let known = devices?.first { event["registration"]?.text == "\($0.registration)" }
        #expect(known?.platform.name == event["platform"]?.text)
        return "\(event["event"]?.text ?? "") \((at - Self.time) / .milliseconds(1)) \(event["platform"]?.text ?? "-")"
      }
    }
    return found
  }

  @Test func stagesAreInOrderAndThoseOfTheOnlyDeviceNameIt() async throws {
    #expect(
      try await timeline([Self.device(.apns)]).events == [
        "accepted 0.0 -", "consumed 4.0 -", "lookedUp 6.0 -", "pushed 6.0 apns", "answered 90.0 apns",
        "settled 100.0 -",
      ])
  }

  @Test func eachOfSeveralDevicesHasItsEvents() async throws {
    let devices = [Self.device(.apns, pushed: 6, answered: 90), Self.device(.fcm, pushed: 7)]
    let found = try await timeline(devices)
    #expect(
      found.events == [
        "accepted 0.0 -", "consumed 4.0 -", "lookedUp 6.0 -", "pushed 6.0 apns", "pushed 7.0 fcm", "answered 90.0 apns",
        "settled 100.0 -",
      ])
    #expect(found.devices.map { $0["pushedAt"]?.text } == devices.map { $0.pushedAt?.description })
    #expect(found.devices.map { $0["answeredAt"]?.text } == devices.map { $0.answeredAt?.description })
  }

  @Test func manyOrUnlistedDevicesHaveTheFirstPushAndTheLastAnswer() async throws {
    let ofTheSend = [
      "accepted 0.0 -", "consumed 4.0 -", "lookedUp 6.0 -", "pushed 6.0 -", "answered 90.0 -", "settled 100.0 -",
    ]
    let many = (0..<21).map { _ in Self.device(.wns, pushed: 8, answered: 50) }
    #expect(try await timeline(many).events == ofTheSend)
    #expect(try await timeline(nil).events == ofTheSend)
    #expect(try await timeline(Array(many.prefix(20))).events.count == 4 + 40)
  }

  @Test func sendInProgressHasTheStagesThatAreKnown() async throws {
    #expect(try await timeline(nil, SendTimes(), settledAfter: nil).events == ["accepted 0.0 -"])
    #expect(
      try await timeline([], SendTimes(consumed: Self.time)).events == [
        "accepted 0.0 -", "consumed 0.0 -", "settled 100.0 -",
      ])
  }

  /// The clock of a worker may be behind that of the front end.
  @Test func eventsAreInTheOrderOfTime() async throws {
    var times = Self.times
    times.consumed = Self.time + .milliseconds(-30)
    #expect(try await timeline([], times).events.first == "consumed -30.0 -")
  }
}
