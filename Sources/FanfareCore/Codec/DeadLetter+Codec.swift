import FoundationEssentials

extension DeadLetter {
  /// The most bytes kept of a longer key, and of a value that would make the record too large for
  /// its topic.
  package static let maximumKeptBytes = 640 * 1024

  /// An upper bound for Kafka's addition to a record: the headers and the frame of its batch.
  private static let frameBytes = 4096

  /// Encodes the record of the dead-letter topic.
  /// Its event id is `<topic>/<partition>/<offset>` of the origin. Key and value are kept as text if they are UTF-8,
  /// else as base64.
  package func encoded() -> [UInt8] {
    CloudEvent.record(.deadLetter, time: at, capacity: 512 + value.count) { id in
      // Escaped, because any client may have produced a dead letter, and `redrive` writes it again.
      id.appendEscaped("\(origin.topic)/\(origin.partition)/\(origin.offset)")
    } data: { json in
      json.member("reason", reason)
      json.member("detail", detail)
      json.object("origin") { json in
        json.member("topic", origin.topic)
        json.member("partition", origin.partition)
        json.member("offset", origin.offset)
      }
      json.member("at", at)
      if let key {
        json.member("key") { json in Self.write(key.prefix(Self.maximumKeptBytes), to: &json) }
      }
      json.member("value") { json in
        // Whole if it fits, because only a whole record can be redriven; a deferred page has over a megabyte.
        let room = StatusRecord.maximumRecordSize - Self.frameBytes - (key?.count ?? 0) - json.bytes.count
        let isWhole = Self.maximumSize(of: value) <= room
        Self.write(isWhole ? value[...] : value.prefix(Self.maximumKeptBytes), to: &json)
      }
      json.member("valueSize", valueSize)
    }
  }

  /// An upper bound for the bytes of `write`, as text or base64.
  private static func maximumSize(of value: [UInt8]) -> Int {
    let escaped = value.reduce(0) { sum, byte in
      sum + (byte < 0x20 ? 6 : byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? 2 : 1)
    }
    return max(escaped, (value.count + 2) / 3 * 4) + 16
  }

  private static func write(_ kept: ArraySlice<UInt8>, to json: inout JSONWriter) {
    json.object { json in
      if let text = String(validating: kept, as: UTF8.self) {
        json.member("text", text)
      } else {
        json.member("base64", Data(kept).base64EncodedString())
      }
    }
  }

  /// Reads a record of the dead-letter topic.
  package static func decode(_ value: ArraySlice<UInt8>) throws(RecordError) -> DeadLetter {
    try CloudEvent.read(value, as: .deadLetter, maximumSize: StatusRecord.maximumRecordSize, data: read(from:)).data
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
      key: key, value: value, valueSize: valueSize)
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

extension DeadLetter.Reason: JSONWritable {}
