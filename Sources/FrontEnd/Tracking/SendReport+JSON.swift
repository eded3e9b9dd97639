import FanfareCore

extension SendReport {
  /// Returns the report as JSON, with the progress of a broadcast. Unknown times and devices are null.
  func json(progress: BroadcastProgress? = nil, at now: UnixTime) -> [UInt8] {
    JSONWriter.object(capacity: 512) {
      $0.member("id", id)
      writeStatus(to: &$0)
      if let progress { $0.object("broadcast") { Self.write(progress, at: now, to: &$0) } }
      $0.array("devices", devices) { writer, device in writer.object { Self.write(device, to: &$0) } }
    }
  }

  /// Writes the report as an element of a list: with sender and audience, without devices.
  fileprivate func writeSummary(to writer: inout JSONWriter) {
    writer.object {
      $0.member("id", id)
      $0.member("sender", sender)
      $0.member("to", audience)
      writeStatus(to: &$0)
    }
  }

  private func writeStatus(to writer: inout JSONWriter) {
    writer.member("state", state.rawValue)
    writer.member("acceptedAt", acceptedAt)
    if let sendAt { writer.member("sendAt", sendAt) }
    if let control { writer.member("course", control.rawValue) }
    writer.member("settledAt", settledAt)
    writer.object("counts") {
      for platform in Platform.allCases {
        guard let outcomes = counts[platform], !outcomes.isEmpty else { continue }
        $0.object(named: platform.rawValue) {
          for outcome in DeviceResult.Outcome.allCases {
            if let count = outcomes[outcome] { $0.member(named: outcome.rawValue, count) }
          }
        }
      }
    }
  }

  private static func write(_ progress: BroadcastProgress, at now: UnixTime, to writer: inout JSONWriter) {
    writer.member("pages", progress.pages)
    writer.member("finishedPages", progress.finishedPages)
    writer.member("course", progress.control.state.rawValue)
    writer.member("cause", progress.control.cause.rawValue)
    writer.member("remainingSeconds", progress.remaining(at: now).map { Int(($0 / .seconds(1)).rounded(.up)) })
  }

  private static func write(_ device: DeviceResult, to writer: inout JSONWriter) {
    writer.member("registration", device.registration)
    writer.member("platform", device.platform.rawValue)
    writer.member("outcome", device.outcome.rawValue)
    writer.member("reason", device.reason)
    writer.member("status", device.status)
    writer.member("attempts", device.attempts)
  }
}

extension SendPage {
  /// Returns the page as JSON with `sends` and `next`, the cursor of the next page or null.
  var json: [UInt8] {
    JSONWriter.object(capacity: 64 + sends.count * 256) {
      $0.array("sends", sends) { $1.writeSummary(to: &$0) }
      $0.member("next", next?.cursor)
    }
  }
}
