extension OutcomeCounts {
  /// Appends the object that stands in a record's `counts`: numbers by platform and outcome, without those that are 0.
  package func append(to output: inout [UInt8]) {
    output.append(UInt8(ascii: "{"))
    var platform: Platform?
    for (kind, count) in entries {
      if kind.platform == platform {
        output.append(UInt8(ascii: ","))
      } else {
        if platform != nil { output.append(literal: "},") }
        output.appendJSON(kind.platform.rawValue)
        output.append(literal: ":{")
        platform = kind.platform
      }
      output.appendJSON(kind.outcome.rawValue)
      output.append(UInt8(ascii: ":"))
      output.appendJSON(count)
    }
    if platform != nil { output.append(UInt8(ascii: "}")) }
    output.append(UInt8(ascii: "}"))
  }

  /// Reads what `append(to:)` wrote. A platform or an outcome that this version does not know is an error: what is not
  /// counted would be missing in every sum.
  static func read(from reader: inout JSONReader) throws(JSONError) -> OutcomeCounts {
    var counts = OutcomeCounts()
    try reader.readObject { (key, reader) throws(JSONError) in
      guard let platform = Platform.allCases.first(where: { $0.rawValue ~= key }) else {
        throw reader.error("is not a known platform")
      }
      // Of several members of one name the last counts.
      counts.forget { $0.platform == platform }
      try reader.readObject { (key, reader) throws(JSONError) in
        guard let outcome = DeviceResult.Outcome.allCases.first(where: { $0.rawValue ~= key }) else {
          throw reader.error("is not a known outcome")
        }
        let count = try reader.readInteger()
        guard (0...1_000_000_000).contains(count) else { throw reader.error("must be 0 to 1000000000") }
        let kind = Kind(platform, outcome)
        counts.forget { $0 == kind }
        counts.add(Int(count), to: kind)
      }
    }
    return counts
  }
}
