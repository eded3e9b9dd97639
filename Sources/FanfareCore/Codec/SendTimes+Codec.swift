/// A record's `times`: Unix milliseconds, which take half the room of date-times; unknown ones are omitted.
extension SendTimes: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("consumed", ifPresent: consumed?.milliseconds)
      json.member("lookedUp", ifPresent: lookedUp?.milliseconds)
      json.member("pushed", ifPresent: pushed?.milliseconds)
      json.member("answered", ifPresent: answered?.milliseconds)
    }
  }

  /// Reads the value of a record's `times`.
  static func read(from reader: inout JSONReader) throws(JSONError) -> SendTimes {
    var times = SendTimes()
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "consumed": times.consumed = try reader.readMilliseconds()
      case "lookedUp": times.lookedUp = try reader.readMilliseconds()
      case "pushed": times.pushed = try reader.readMilliseconds()
      case "answered": times.answered = try reader.readMilliseconds()
      default: try reader.skipValue()
      }
    }
    return times
  }
}

extension JSONReader {
  /// The last millisecond of the year 9999.
  private static let lastMillisecond: Int64 = 253_402_300_799_999

  /// Reads a time in Unix milliseconds.
  mutating func readMilliseconds() throws(JSONError) -> UnixTime {
    let number = try readInteger()
    guard (0...Self.lastMillisecond).contains(number) else { throw error("must be 0 to \(Self.lastMillisecond)") }
    return UnixTime(milliseconds: number)
  }
}
