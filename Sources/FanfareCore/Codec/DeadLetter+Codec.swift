import FoundationEssentials

extension DeadLetter {
  /// Where a record's key is cut that has more bytes, and its value where the letter would become larger than its topic
  /// takes; `valueSize` tells how large the value was.
  package static let maximumKeptBytes = 640 * 1024

  /// What Kafka adds to a record: the headers, and the frame of its batch.
  private static let frameBytes = 4096

  /// The record of the dead-letter topic. Its event id is `<topic>/<partition>/<offset>` of the origin. Key and value
  /// are kept as text where they are UTF-8, else as base64.
  package func encoded() -> [UInt8] {
    var output = CloudEvent.begin(.deadLetter, time: at, capacity: 512 + value.count) { output in
      // Escaped, without the quotes that are there already: a letter may have been written by anybody, and is written
      // again when it is moved on.
      var id: [UInt8] = []
      id.appendJSON("\(origin.topic)/\(origin.partition)/\(origin.offset)")
      output.append(contentsOf: id.dropFirst().dropLast())
    }
    output.append(literal: #"{"reason":"#)
    output.appendJSON(reason.rawValue)
    output.append(literal: #","detail":"#)
    output.appendJSON(detail)
    output.append(literal: #","origin":{"topic":"#)
    output.appendJSON(origin.topic)
    output.append(literal: #","partition":"#)
    output.appendJSON(origin.partition)
    output.append(literal: #","offset":"#)
    output.appendJSON(origin.offset)
    output.append(literal: #"},"at":"#)
    output.appendJSON(at)
    if let key {
      output.append(literal: #","key":"#)
      output += Self.object(of: key.prefix(Self.maximumKeptBytes))
    }
    output.append(literal: #","value":"#)
    // Whole where that is possible at all: only then can it be put back, and what a page has put off has a megabyte and
    // more.
    let room = StatusRecord.maximumRecordSize - Self.frameBytes - (key?.count ?? 0) - output.count
    output += Self.object(of: Self.mostBytes(of: value) <= room ? value[...] : value.prefix(Self.maximumKeptBytes))
    output.append(literal: #","valueSize":"#)
    output.appendJSON(valueSize)
    output.append(literal: "}}")
    return output
  }

  /// Reads a record of the dead-letter topic.
  package static func decode(_ value: ArraySlice<UInt8>) throws(RecordError) -> DeadLetter {
    try CloudEvent.read(value, as: .deadLetter, maximumSize: StatusRecord.maximumRecordSize, data: read(from:)).data
  }

  /// How many bytes the object of a value takes at most, be it text or not.
  private static func mostBytes(of value: [UInt8]) -> Int {
    let escaped = value.reduce(0) { sum, byte in
      sum + (byte < 0x20 ? 6 : byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? 2 : 1)
    }
    return max(escaped, (value.count + 2) / 3 * 4) + 16
  }

  private static func object(of kept: ArraySlice<UInt8>) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(kept.count + 16)
    if let text = String(validating: kept, as: UTF8.self) {
      output.append(literal: #"{"text":"#)
      output.appendJSON(text)
    } else {
      output.append(literal: #"{"base64":""#)
      output.append(contentsOf: Data(kept).base64EncodedString().utf8)
      output.append(UInt8(ascii: "\""))
    }
    output.append(UInt8(ascii: "}"))
    return output
  }

  private static func read(from reader: inout JSONReader) throws(JSONError) -> DeadLetter {
    var (reason, detail, at): (Reason?, String, UnixTime?) = (nil, "", nil)
    var (topic, partition, offset): (String?, Int32?, Int64?)
    var (key, value, valueSize): ([UInt8]?, [UInt8]?, Int?)
    try reader.readObject { (member, reader) throws(JSONError) in
      switch member {
      case "reason": reason = Reason(rawValue: try reader.readString())
      case "detail": detail = try reader.readString()
      case "at": at = try reader.readTime()
      case "key": key = try readBytes(from: &reader)
      case "value": value = try readBytes(from: &reader)
      case "valueSize": valueSize = Int(clamping: try reader.readInteger())
      case "origin":
        try reader.readObject { (member, reader) throws(JSONError) in
          switch member {
          case "topic": topic = try reader.readString()
          case "partition": partition = Int32(exactly: try reader.readInteger())
          case "offset": offset = try reader.readInteger()
          default: try reader.skipValue()
          }
        }
      default: try reader.skipValue()
      }
    }
    guard let reason, let at, let topic, let partition, let offset, let value else {
      throw JSONError(field: "", problem: "must have reason, origin, at and value")
    }
    return DeadLetter(
      reason: reason, detail: detail, origin: Origin(topic: topic, partition: partition, offset: offset), at: at,
      key: key,
      value: value, valueSize: valueSize)
  }

  private static func readBytes(from reader: inout JSONReader) throws(JSONError) -> [UInt8] {
    var bytes: [UInt8]?
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "text": bytes = Array(try reader.readString().utf8)
      case "base64":
        guard let data = Data(base64Encoded: try reader.readString()) else { throw reader.error("must be base64") }
        bytes = Array(data)
      default: try reader.skipValue()
      }
    }
    guard let bytes else { throw reader.error("must have text or base64") }
    return bytes
  }
}
