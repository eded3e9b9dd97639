extension StatusRecord {
  /// The most bytes in a record of the status topic.
  package static let maximumRecordSize = 8 * 1024 * 1024
  /// The most work items of a send. A record with a higher number comes from a faulty writer.
  package static let maximumParts = 10_000_000
  /// The most work items for which one record may stand.
  package static let maximumSpan = 10_000

  /// The record of the status topic.
  ///
  /// Its event id is `<send>/<part>`, or `<send>/<attempt>/<part>` if there are several parts: the same work item has
  /// the same id however often it is written. A send in one part omits `parts` and `attempt`.
  package func encoded() -> [UInt8] {
    CloudEvent.record(
      .status, time: settledAt, capacity: 640 + devices.count * 208, traceparent: traceparent, tracestate: tracestate
    ) { id in
      CloudEvent.appendID(of: send, attempt: attempt, part: part, to: &id)
    } data: { json in
      json.member("send", send)
      json.member("hub", hub)
      json.member("part", part)
      if parts > 1 { json.member("parts", parts) }
      if span > 1 { json.member("span", span) }
      json.member("attempt", ifPresent: attempt)
      json.member("state", state)
      json.member("sender", ifPresent: sender)
      json.member("to", audience)
      json.member("acceptedAt", acceptedAt)
      json.member("settledAt", settledAt)
      json.member("devices", devices)
      if !counts.isEmpty { json.member("counts", counts) }
      json.member("traceparent", ifPresent: traceparent)
      if !times.isEmpty { json.member("times", times) }
    }
  }

  /// Reads a record of the status topic. Unknown members are ignored.
  package static func decode(_ value: ArraySlice<UInt8>) throws(RecordError) -> StatusRecord {
    var (event, record) = try CloudEvent.read(value, as: .status, maximumSize: maximumRecordSize, data: read(from:))
    record.tracestate = event.tracestate
    return record
  }

  private static func read(from reader: inout JSONReader) throws(JSONError) -> StatusRecord {
    var (send, hub, state): (SendID?, HubName?, State?)
    var (part, parts, span, attempt): (Int64?, Int64, Int64, DispatchID?) = (nil, 1, 1, nil)
    var (sender, audience, traceparent): (String?, Audience?, String?)
    var (acceptedAt, settledAt): (UnixTime?, UnixTime?)
    var devices: [DeviceResult] = []
    var counts = OutcomeCounts()
    var times = SendTimes()
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "send": send = try reader.readUTF8 { SendID(utf8: $0) }
      case "hub": hub = HubName(try reader.readString())
      case "part": part = try reader.readInteger()
      case "parts":
        parts = try reader.readInteger()
        guard (1...Int64(maximumParts)).contains(parts) else { throw reader.error("must be 1 to \(maximumParts)") }
      case "span":
        span = try reader.readInteger()
        guard (1...Int64(maximumSpan)).contains(span) else { throw reader.error("must be 1 to \(maximumSpan)") }
      case "attempt":
        attempt = DispatchID(try reader.readString())
        guard attempt != nil else { throw reader.error("must be a UUID") }
      case "state": state = State(rawValue: try reader.readString())
      case "sender": sender = try reader.readString()
      case "to": audience = try Audience.read(from: &reader)
      case "acceptedAt": acceptedAt = try reader.readTime()
      case "settledAt": settledAt = try reader.readTime()
      case "counts": counts = try OutcomeCounts.read(from: &reader)
      case "traceparent": traceparent = try reader.readString()
      case "times": times = try SendTimes.read(from: &reader)
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
    guard number + span <= parts, span == 1 || (devices.isEmpty && counts.isEmpty && audience?.mayHavePages != false)
    else {
      throw JSONError(field: "span", problem: "must end within the parts of a broadcast, and have no results")
    }
    return StatusRecord(
      send: try required(send, "send"), hub: try required(hub, "hub"), part: Int(number), parts: Int(parts),
      span: Int(span),
      attempt: attempt, state: try required(state, "state"), sender: sender, audience: try required(audience, "to"),
      acceptedAt: try required(acceptedAt, "acceptedAt"), settledAt: try required(settledAt, "settledAt"),
      devices: devices, counts: counts, traceparent: traceparent, times: times)
  }
}

extension StatusRecord.State: JSONWritable {}
extension DeviceResult.Outcome: JSONWritable {}

extension DeviceResult: JSONWritable {
  /// Writes an element of a record's `devices`. Members without a value are omitted.
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("registration", registration)
      json.member("platform", platform)
      json.member("outcome", outcome)
      if !reason.isEmpty { json.member("reason", reason) }
      if status != 0 { json.member("status", status) }
      json.member("attempts", attempts)
      json.member("pushed", ifPresent: pushedAt?.milliseconds)
      json.member("answered", ifPresent: answeredAt?.milliseconds)
    }
  }

  /// Reads an element of a record's `devices`.
  static func read(from reader: inout JSONReader) throws(JSONError) -> DeviceResult {
    var (registration, platform, outcome): (RegistrationID?, Platform?, Outcome?)
    var (reason, status, attempts) = ("", 0, 0)
    var (pushedAt, answeredAt): (UnixTime?, UnixTime?)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "registration": registration = try reader.readRegistrationID()
      case "platform": platform = Platform(rawName: try reader.readString())
      case "outcome": outcome = Outcome(rawValue: try reader.readString())
      case "reason": reason = try reader.readString()
      case "status": status = Int(clamping: try reader.readInteger())
      case "attempts": attempts = Int(clamping: try reader.readInteger())
      case "pushed": pushedAt = try reader.readMilliseconds()
      case "answered": answeredAt = try reader.readMilliseconds()
      default: try reader.skipValue()
      }
    }
    guard let registration, let platform, let outcome else {
      throw reader.error("must have a registration, a platform and an outcome")
    }
    return DeviceResult(
      registration: registration, platform: platform, outcome: outcome, reason: reason, status: status,
      attempts: attempts, pushedAt: pushedAt, answeredAt: answeredAt)
  }
}

extension OutcomeCounts: JSONWritable {
  /// Writes the value of a record's `counts`: numbers by platform and outcome; zeros are omitted.
  package func write(to json: inout JSONWriter) {
    json.object { json in
      var index = 0
      while index < entries.count {
        let platform = entries[index].kind.platform
        json.member(named: platform.name) { json in
          json.object { json in
            while index < entries.count, entries[index].kind.platform == platform {
              json.member(named: entries[index].kind.outcome.rawValue, entries[index].count)
              index += 1
            }
          }
        }
      }
    }
  }

  /// Reads the value of a record's `counts`.
  ///
  /// An unknown platform or outcome is an error: ignoring it would make every sum wrong.
  static func read(from reader: inout JSONReader) throws(JSONError) -> OutcomeCounts {
    var counts = OutcomeCounts()
    try reader.readObject { (key, reader) throws(JSONError) in
      guard let platform = Platform.allCases.first(where: { $0.name ~= key }) else {
        throw reader.error("is not a known platform")
      }
      // If a member occurs several times, the last one counts.
      counts.remove { $0.platform == platform }
      try reader.readObject { (key, reader) throws(JSONError) in
        guard let outcome = DeviceResult.Outcome.allCases.first(where: { $0.rawValue ~= key }) else {
          throw reader.error("is not a known outcome")
        }
        let count = try reader.readInteger()
        guard (0...1_000_000_000).contains(count) else { throw reader.error("must be 0 to 1000000000") }
        let kind = Kind(platform, outcome)
        counts.remove { $0 == kind }
        counts.add(Int(count), to: kind)
      }
    }
    return counts
  }
}
