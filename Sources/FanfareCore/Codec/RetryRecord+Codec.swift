extension RetryRecord {
  /// The most bytes in a record of the retry topics: those of a status record and the send.
  package static let maximumRecordSize = StatusRecord.maximumRecordSize

  /// The record of the retry topics.
  ///
  /// Its event id is `<send>/<part>/<deferrals>`, or `<send>/<attempt>/<part>/<deferrals>` if there are several parts.
  /// It contains the whole send, including members that this version does not know.
  package func encoded(at time: UnixTime) -> [UInt8] {
    let request = send.encoded()
    return CloudEvent.record(
      .retry, time: time, capacity: 512 + request.count + devices.count * 192, traceparent: send.traceparent,
      tracestate: send.tracestate
    ) { id in
      CloudEvent.appendID(of: send.id, attempt: attempt, part: part, to: &id)
      id.append(UInt8(ascii: "/"))
      id.appendJSON(deferrals)
    } data: { json in
      // First, so that a reader that only waits for it need not parse the rest.
      json.member("notBefore", notBefore)
      if cameEarly { json.member("cameEarly", true) }
      json.member("part", part)
      json.member("parts", parts)
      json.member("attempt", ifPresent: attempt)
      json.member("deferrals", deferrals)
      json.member("devices", devices)
      if !counts.isEmpty { json.member("counts", counts) }
      if !times.isEmpty { json.member("times", times) }
      json.member("send", json: request)
    }
  }

  /// Reads a record of the retry topics, or one that was moved from there to the sends topic.
  /// Unknown members are ignored, except those of the send.
  ///
  /// If the record was written after `now`, its writer's clock is ahead of ours: the times of its devices are moved
  /// back by the difference, so that no device waits longer than the deferral intended. With nil, times are unchanged.
  package static func decode(
    _ value: ArraySlice<UInt8>, recordTime: UnixTime, now: UnixTime? = nil
  ) throws(RecordError) -> RetryRecord {
    var (event, record) = try CloudEvent.read(value, as: .retry, maximumSize: maximumRecordSize) {
      (reader) throws(JSONError) in
      try read(from: &reader, recordTime: recordTime)
    }
    record.writtenAt = event.time
    guard let now, let time = event.time, time > now else { return record }
    record.devices = record.devices.map { $0.movedBack(by: time - now) }
    record.writtenAt = now
    return record
  }

  private static func read(from reader: inout JSONReader, recordTime: UnixTime) throws(JSONError) -> RetryRecord {
    var (part, parts, deferrals): (Int64?, Int64, Int64?) = (nil, 1, nil)
    var attempt: DispatchID?
    var cameEarly = false
    var request: ArraySlice<UInt8>?
    var devices: [Device] = []
    var counts = OutcomeCounts()
    var times = SendTimes()
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "part": part = try reader.readInteger()
      case "parts":
        parts = try reader.readInteger()
        guard (1...Int64(StatusRecord.maximumParts)).contains(parts) else {
          throw reader.error("must be 1 to \(StatusRecord.maximumParts)")
        }
      case "attempt":
        attempt = DispatchID(try reader.readString())
        guard attempt != nil else { throw reader.error("must be a UUID") }
      case "deferrals":
        let number = try reader.readInteger()
        guard (1...1_000_000).contains(number) else { throw reader.error("must be 1 to 1000000") }
        deferrals = number
      case "cameEarly": cameEarly = try reader.readBoolean()
      case "devices":
        devices = []
        try reader.readArray { (reader) throws(JSONError) in devices.append(try Device.read(from: &reader)) }
      case "counts": counts = try OutcomeCounts.read(from: &reader)
      case "times": times = try SendTimes.read(from: &reader)
      case "send": request = try reader.readEmbeddedSend()
      default: try reader.skipValue()
      }
    }
    guard let part, (0..<parts).contains(part) else {
      throw JSONError(field: "part", problem: "must be 0 to \(parts - 1)")
    }
    guard parts == 1 || attempt != nil else { throw JSONError(field: "attempt", problem: "is missing") }
    guard let deferrals else { throw JSONError(field: "deferrals", problem: "is missing") }
    guard !devices.isEmpty else { throw JSONError(field: "devices", problem: "must not be empty") }
    let send = try SendRequest.decode(embedded: request, recordTime: recordTime, maximumSize: maximumRecordSize)
    return RetryRecord(
      send: send, part: Int(part), parts: Int(parts), attempt: attempt, deferrals: Int(deferrals),
      cameEarly: cameEarly, devices: devices, counts: counts, times: times)
  }

  /// How long from `now` on the record must be held; 0 or less if it is due.
  ///
  /// Never longer than its writer intended. For a record with `cameEarly` it is exactly that long, whatever `now` is.
  /// Throws if the envelope, `notBefore` or `cameEarly` cannot be read; the rest is not checked.
  package static func wait(of value: ArraySlice<UInt8>, at now: UnixTime) throws(RecordError) -> Duration {
    let (event, hold) = try CloudEvent.read(value, as: .retry, maximumSize: maximumRecordSize) {
      (reader) throws(JSONError) in
      var (time, cameEarly): (UnixTime?, Bool) = (nil, false)
      try reader.readObject { (key, reader) throws(JSONError) in
        switch key {
        case "notBefore": time = try reader.readTime()
        case "cameEarly": cameEarly = try reader.readBoolean()
        // Skipped as `decode` reads it: a nested send may exceed the depth that `skipValue` accepts.
        case "send": _ = try reader.readUnchecked()
        default: try reader.skipValue()
        }
      }
      guard let time else { throw JSONError(field: "notBefore", problem: "must be an RFC 3339 date-time") }
      return (end: time, cameEarly: cameEarly)
    }
    let written = event.time ?? now
    return hold.end - (hold.cameEarly ? written : max(written, now))
  }
}

extension RetryRecord.Device: JSONWritable {
  package func write(to json: inout JSONWriter) {
    switch self {
    case .done(let result): result.write(to: &json)
    case .waiting(let device): device.write(to: &json)
    }
  }
}

extension RetryRecord.Waiting: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("registration", registration)
      json.member("platform", platform)
      json.member("notBefore", notBefore)
      json.member("attempts", attempts)
      json.member("heldAttempts", heldAttempts)
      json.member("waits", waits)
      if wasUnanswered { json.member("unanswered", true) }
      json.member("firstAttemptAt", ifPresent: firstAttemptAt)
      if !reason.isEmpty { json.member("reason", reason) }
      if status != 0 { json.member("status", status) }
      if contradictions != 0 { json.member("contradictions", contradictions) }
    }
  }
}

extension RetryRecord.Device {
  /// The same device with its times moved back.
  fileprivate func movedBack(by offset: Duration) -> Self {
    guard case .waiting(var device) = self else { return self }
    device.notBefore = device.notBefore + (.zero - offset)
    device.firstAttemptAt = device.firstAttemptAt.map { $0 + (.zero - offset) }
    return .waiting(device)
  }

  /// Reads an element of `devices`: a result if it has an `outcome`, else a waiting device.
  fileprivate static func read(from reader: inout JSONReader) throws(JSONError) -> Self {
    var (registration, platform, outcome): (RegistrationID?, Platform?, DeviceResult.Outcome?)
    var (notBefore, firstAttemptAt): (UnixTime?, UnixTime?)
    var (pushedAt, answeredAt): (UnixTime?, UnixTime?)
    var (attempts, heldAttempts, waits, status, contradictions) = (0, 0, 0, 0, 0)
    var (reason, wasUnanswered) = ("", false)
    func count(_ reader: inout JSONReader) throws(JSONError) -> Int {
      let number = try reader.readInteger()
      guard (0...1_000_000).contains(number) else { throw reader.error("must be 0 to 1000000") }
      return Int(number)
    }
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "registration": registration = try reader.readRegistrationID()
      case "platform": platform = Platform(rawName: try reader.readString())
      case "outcome": outcome = DeviceResult.Outcome(rawValue: try reader.readString())
      case "notBefore": notBefore = try reader.readTime()
      case "firstAttemptAt": firstAttemptAt = try reader.readTime()
      case "pushed": pushedAt = try reader.readMilliseconds()
      case "answered": answeredAt = try reader.readMilliseconds()
      case "attempts": attempts = try count(&reader)
      case "heldAttempts": heldAttempts = try count(&reader)
      case "waits": waits = try count(&reader)
      case "unanswered": wasUnanswered = try reader.readBoolean()
      case "reason": reason = try reader.readString()
      case "status": status = try count(&reader)
      case "contradictions": contradictions = try count(&reader)
      default: try reader.skipValue()
      }
    }
    guard let registration, let platform else { throw reader.error("must have a registration and a platform") }
    if let outcome {
      return .done(
        DeviceResult(
          registration: registration, platform: platform, outcome: outcome, reason: reason, status: status,
          attempts: attempts, pushedAt: pushedAt, answeredAt: answeredAt))
    }
    guard let notBefore else { throw reader.error("must have an outcome or a notBefore") }
    return .waiting(
      RetryRecord.Waiting(
        registration: registration, platform: platform, notBefore: notBefore, attempts: attempts,
        heldAttempts: min(heldAttempts, attempts), waits: waits, wasUnanswered: wasUnanswered,
        firstAttemptAt: firstAttemptAt, reason: reason, status: status, contradictions: contradictions))
  }
}
