extension StatusRecord {
  /// The most bytes a record of the status topic may have.
  package static let maximumRecordSize = 8 * 1024 * 1024
  /// The most work items a send may have; a record that says more is a faulty writer's.
  package static let maximumParts = 10_000_000

  /// The record of the status topic. Its event id is `<send>/<part>`, or `<send>/<attempt>/<part>` where there are
  /// several parts: the same work item has the same id however often it is written. What a send in one part need not
  /// say is left out.
  package func encoded() -> [UInt8] {
    var output = CloudEvent.begin(.status, time: settledAt, capacity: 512 + devices.count * 160) {
      output in
      send.append(to: &output)
      output.append(UInt8(ascii: "/"))
      if let attempt {
        attempt.append(to: &output)
        output.append(UInt8(ascii: "/"))
      }
      output.appendJSON(part)
    }
    output.append(literal: #"{"send":"#)
    output.appendJSON(send)
    output.append(literal: #","hub":"#)
    output.appendJSON(hub.rawValue)
    output.append(literal: #","part":"#)
    output.appendJSON(part)
    if parts > 1 {
      output.append(literal: #","parts":"#)
      output.appendJSON(parts)
    }
    if let attempt {
      output.append(literal: #","attempt":"#)
      output.appendJSON(attempt)
    }
    output.append(literal: #","state":"#)
    output.appendJSON(state.rawValue)
    if let sender {
      output.append(literal: #","sender":"#)
      output.appendJSON(sender)
    }
    output.append(literal: #","to":"#)
    audience.append(to: &output)
    output.append(literal: #","acceptedAt":"#)
    output.appendJSON(acceptedAt)
    output.append(literal: #","settledAt":"#)
    output.appendJSON(settledAt)
    output.append(literal: #","devices":["#)
    for (index, device) in devices.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      device.append(to: &output)
    }
    output.append(UInt8(ascii: "]"))
    if !counts.isEmpty {
      output.append(literal: #","counts":"#)
      counts.append(to: &output)
    }
    if let traceparent {
      output.append(literal: #","traceparent":"#)
      output.appendJSON(traceparent)
    }
    output.append(literal: "}}")
    return output
  }

  /// Reads a record of the status topic; members that this version does not know are passed over.
  package static func decode(_ value: ArraySlice<UInt8>) throws(RecordError) -> StatusRecord {
    try CloudEvent.read(value, as: .status, maximumSize: maximumRecordSize, data: read(from:)).data
  }

  private static func read(from reader: inout JSONReader) throws(JSONError) -> StatusRecord {
    var (send, hub, state): (SendID?, HubName?, State?)
    var (part, parts, attempt): (Int64?, Int64, AttemptID?) = (nil, 1, nil)
    var (sender, audience, traceparent): (String?, Audience?, String?)
    var (acceptedAt, settledAt): (UnixTime?, UnixTime?)
    var devices: [DeviceResult] = []
    var counts = OutcomeCounts()
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "send": send = try reader.readUTF8 { SendID(utf8: $0) }
      case "hub": hub = HubName(try reader.readString())
      case "part": part = try reader.readInteger()
      case "parts":
        parts = try reader.readInteger()
        guard (1...Int64(maximumParts)).contains(parts) else { throw reader.error("must be 1 to \(maximumParts)") }
      case "attempt":
        attempt = AttemptID(try reader.readString())
        guard attempt != nil else { throw reader.error("must be a UUID") }
      case "state": state = State(rawValue: try reader.readString())
      case "sender": sender = try reader.readString()
      case "to": audience = try Audience.read(from: &reader)
      case "acceptedAt": acceptedAt = try reader.readTime()
      case "settledAt": settledAt = try reader.readTime()
      case "counts": counts = try OutcomeCounts.read(from: &reader)
      case "traceparent": traceparent = try reader.readString()
      case "devices":
        devices = []
        try reader.readArray { (reader) throws(JSONError) in devices.append(try DeviceResult.read(from: &reader)) }
      default: try reader.skipValue()
      }
    }
    func required<Value>(_ value: Value?, _ field: String) throws(JSONError) -> Value {
      guard let value else { throw JSONError(field: field, problem: "is missing or not what it should be") }
      return value
    }
    let number = try required(part, "part")
    guard (0..<parts).contains(number) else { throw JSONError(field: "part", problem: "must be 0 to \(parts - 1)") }
    return StatusRecord(
      send: try required(send, "send"), hub: try required(hub, "hub"), part: Int(number), parts: Int(parts),
      attempt: attempt,
      state: try required(state, "state"), sender: sender, audience: try required(audience, "to"),
      acceptedAt: try required(acceptedAt, "acceptedAt"), settledAt: try required(settledAt, "settledAt"),
      devices: devices,
      counts: counts, traceparent: traceparent)
  }
}
