import FanfareCore

extension SendReport {
  /// The report as callers see it. Times and devices that are not known, or not kept, are null.
  var json: [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(512)
    output.append(literal: #"{"id":"#)
    output.appendJSON(id)
    output.append(literal: #","state":"#)
    output.appendJSON(state.rawValue)
    output.append(literal: #","acceptedAt":"#)
    output.appendJSON(acceptedAt)
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
    output.append(literal: #"},"devices":"#)
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
  fileprivate mutating func appendJSON(_ time: UnixTime?) {
    if let time { appendJSON(time) } else { append(literal: "null") }
  }
}
