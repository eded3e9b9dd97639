import FanfareCore

/// The way of a send through the system: the stages whose times are known, in the order of time.
struct Timeline {
  /// With more devices only the first push and the last answer of the send are listed.
  static let maximumDevices = 20

  /// The stages in their usual order.
  enum Stage: String, CaseIterable {
    case accepted, consumed, lookedUp, pushed, answered, settled
  }

  struct Event {
    let stage: Stage
    let at: UnixTime
    /// The device that was pushed to; nil if the event is the whole send's.
    let device: DeviceResult?

    func write(to writer: inout JSONWriter) {
      writer.object {
        $0.member("event", stage.rawValue)
        $0.member("at", at)
        $0.member("platform", ifPresent: device?.platform)
        $0.member("registration", ifPresent: device?.registration)
      }
    }
  }

  private(set) var events: [Event] = []

  init(of report: SendReport) {
    append(.accepted, report.acceptedAt)
    append(.consumed, report.times.consumed)
    append(.lookedUp, report.times.lookedUp)
    let devices = report.devices ?? []
    append(.pushed, report.times.pushed, of: devices, at: \.pushedAt)
    append(.answered, report.times.answered, of: devices, at: \.answeredAt)
    append(.settled, report.settledAt)
    // Stable: events of one moment stay in the order of their stages. The clocks of two processes may differ.
    events = events.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
  }

  private mutating func append(_ stage: Stage, _ time: UnixTime?, of device: DeviceResult? = nil) {
    if let time { events.append(Event(stage: stage, at: time, device: device)) }
  }

  /// Appends a stage of each device, or, where their times are unknown or there are too many, of the send.
  private mutating func append(
    _ stage: Stage, _ time: UnixTime?, of devices: [DeviceResult], at timeOf: (DeviceResult) -> UnixTime?
  ) {
    let isTimed = devices.count <= Self.maximumDevices && devices.contains { timeOf($0) != nil }
    guard isTimed else { return append(stage, time, of: devices.count == 1 ? devices.first : nil) }
    for device in devices { append(stage, timeOf(device), of: device) }
  }
}
