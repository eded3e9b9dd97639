extension DeviceResult {
  /// Appends the object that stands in a status record's `devices`.
  func append(to output: inout [UInt8]) {
    output.append(literal: #"{"registration":"#)
    output.appendJSON(registration)
    output.append(literal: #","platform":"#)
    output.appendJSON(platform.rawValue)
    output.append(literal: #","outcome":"#)
    output.appendJSON(outcome.rawValue)
    if !reason.isEmpty {
      output.append(literal: #","reason":"#)
      output.appendJSON(reason)
    }
    if status != 0 {
      output.append(literal: #","status":"#)
      output.appendJSON(status)
    }
    output.append(literal: #","attempts":"#)
    output.appendJSON(attempts)
    output.append(UInt8(ascii: "}"))
  }

  /// Reads what `append(to:)` wrote.
  static func read(from reader: inout JSONReader) throws(JSONError) -> DeviceResult {
    var (registration, platform, outcome): (RegistrationID?, Platform?, Outcome?)
    var (reason, status, attempts) = ("", 0, 0)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "registration": registration = try reader.readRegistrationID()
      case "platform": platform = Platform(rawValue: try reader.readString())
      case "outcome": outcome = Outcome(rawValue: try reader.readString())
      case "reason": reason = try reader.readString()
      case "status": status = Int(clamping: try reader.readInteger())
      case "attempts": attempts = Int(clamping: try reader.readInteger())
      default: try reader.skipValue()
      }
    }
    guard let registration, let platform, let outcome else {
      throw reader.error("must have a registration, a platform and an outcome")
    }
    return DeviceResult(
      registration: registration, platform: platform, outcome: outcome, reason: reason, status: status,
      attempts: attempts)
  }
}
