import FanfareCore

extension SendReport {
  /// The report as callers see it, with what is known of a broadcast's progress. Times and devices that are not known,
  /// or not kept, are null.
  func json(progress: BroadcastProgress? = nil, at now: UnixTime) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(512)
    output.append(literal: #"{"id":"#)
    output.appendJSON(id)
    appendStanding(to: &output)
    if let progress { Self.append(progress, at: now, to: &output) }
    output.append(literal: #","devices":"#)
    if let devices {
      output.append(UInt8(ascii: "["))
      for (index, device) in devices.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        Self.append(device, to: &output)
      }
      output.append(literal: "]}")
    } else {
      output.append(literal: "null}")
    }
    return output
  }

  /// Appends the members that say where the send stands, each preceded by a comma.
  func appendStanding(to output: inout [UInt8]) {
    output.append(literal: #","state":"#)
    output.appendJSON(state.rawValue)
    output.append(literal: #","acceptedAt":"#)
    output.appendJSON(acceptedAt)
    if let sendAt {
      output.append(literal: #","sendAt":"#)
      output.appendJSON(sendAt)
    }
    if let control {
      output.append(literal: #","course":"#)
      output.appendJSON(control.rawValue)
    }
    output.append(literal: #","settledAt":"#)
    output.appendJSON(settledAt)
    output.append(literal: #","counts":{"#)
    var isFirst = true
    for platform in Platform.allCases {
      guard let outcomes = counts[platform], !outcomes.isEmpty else { continue }
      if !isFirst { output.append(UInt8(ascii: ",")) }
      isFirst = false
      output.appendJSON(platform.rawValue)
      output.append(UInt8(ascii: ":"))
      Self.append(outcomes, to: &output)
    }
    output.append(UInt8(ascii: "}"))
  }

  private static func append(_ progress: BroadcastProgress, at now: UnixTime, to output: inout [UInt8]) {
    output.append(literal: #","broadcast":{"pages":"#)
    output.appendJSON(progress.pages)
    output.append(literal: #","finishedPages":"#)
    output.appendJSON(progress.finishedPages)
    output.append(literal: #","course":"#)
    output.appendJSON(progress.control.state.rawValue)
    output.append(literal: #","cause":"#)
    output.appendJSON(progress.control.cause.rawValue)
    output.append(literal: #","remainingSeconds":"#)
    if let remaining = progress.remaining(at: now) {
      output.appendJSON(Int((remaining / .seconds(1)).rounded(.up)))
    } else {
      output.append(literal: "null")
    }
    output.append(UInt8(ascii: "}"))
  }

  private static func append(_ outcomes: [DeviceResult.Outcome: Int], to output: inout [UInt8]) {
    var opening = UInt8(ascii: "{")
    for outcome in DeviceResult.Outcome.allCases {
      guard let count = outcomes[outcome] else { continue }
      output.append(opening)
      opening = UInt8(ascii: ",")
      output.appendJSON(outcome.rawValue)
      output.append(UInt8(ascii: ":"))
      output.appendJSON(count)
    }
    output.append(UInt8(ascii: "}"))
  }

  private static func append(_ device: DeviceResult, to output: inout [UInt8]) {
    output.append(literal: #"{"registration":"#)
    output.appendJSON(device.registration)
    output.append(literal: #","platform":"#)
    output.appendJSON(device.platform.rawValue)
    output.append(literal: #","outcome":"#)
    output.appendJSON(device.outcome.rawValue)
    output.append(literal: #","reason":"#)
    output.appendJSON(device.reason)
    output.append(literal: #","status":"#)
    output.appendJSON(device.status)
    output.append(literal: #","attempts":"#)
    output.appendJSON(device.attempts)
    output.append(UInt8(ascii: "}"))
  }
}

extension [UInt8] {
  /// Appends a JSON string that holds a moment; null where there is none.
  mutating func appendJSON(_ time: UnixTime?) {
    if let time { appendJSON(time) } else { append(literal: "null") }
  }

  /// Appends a JSON string; null where there is none.
  mutating func appendJSON(_ text: String?) {
    if let text { appendJSON(text) } else { append(literal: "null") }
  }
}
