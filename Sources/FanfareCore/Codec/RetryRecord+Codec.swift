extension RetryRecord {
  /// The most bytes of such a record: those of a status record and the send it stands for.
  package static let maximumRecordSize = StatusRecord.maximumRecordSize

  /// The record of the retry topics. Its event id is `<send>/<part>/<deferrals>`, or
  /// `<send>/<attempt>/<part>/<deferrals>` where there are several parts; the send is in it whole, with what this
  /// version does not know of its data.
  package func encoded(at time: UnixTime) -> [UInt8] {
    let request = send.encoded()
    var output = CloudEvent.begin(
      .retry, time: time, capacity: 512 + request.count + devices.count * 192
    ) {
      output in
      send.id.append(to: &output)
      output.append(UInt8(ascii: "/"))
      if let attempt {
        attempt.append(to: &output)
        output.append(UInt8(ascii: "/"))
      }
      output.appendJSON(part)
      output.append(UInt8(ascii: "/"))
      output.appendJSON(deferrals)
    }
    // First, so that whoever waits for it need not read the rest.
    output.append(literal: #"{"notBefore":"#)
    output.appendJSON(notBefore)
    if cameEarly { output.append(literal: #","cameEarly":true"#) }
    output.append(literal: #","part":"#)
    output.appendJSON(part)
    output.append(literal: #","parts":"#)
    output.appendJSON(parts)
    if let attempt {
      output.append(literal: #","attempt":"#)
      output.appendJSON(attempt)
    }
    output.append(literal: #","deferrals":"#)
    output.appendJSON(deferrals)
    output.append(literal: #","devices":["#)
    for (index, device) in devices.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      switch device {
      case .done(let result): result.append(to: &output)
      case .waiting(let device): device.append(to: &output)
      }
    }
    output.append(UInt8(ascii: "]"))
    if !counts.isEmpty {
      output.append(literal: #","counts":"#)
      counts.append(to: &output)
    }
    output.append(literal: #","send":"#)
    output.append(contentsOf: request)
    output.append(literal: "}}")
    return output
  }

  /// Reads a record of the retry topics, wherever it lies. Members that this version does not know are passed over, but
  /// for the send's.
  ///
  /// A record that was written later than `now` has a clock behind it that is ahead of ours: its devices' times are set
  /// back by as much, so that none waits longer from now on than was wanted when it was put off. nil: times are read as
  /// they are.
  package static func decode(
    _ value: ArraySlice<UInt8>, recordTime: UnixTime, now: UnixTime? = nil
  ) throws(RecordError) -> RetryRecord {
    var (event, record) = try CloudEvent.read(value, as: .retry, maximumSize: maximumRecordSize) {
      (reader) throws(JSONError) in
      try read(from: &reader, recordTime: recordTime)
    }
    record.writtenAt = event.time
    guard let now, let time = event.time, time > now else { return record }
    record = RetryRecord(
      send: record.send, part: record.part, parts: record.parts, attempt: record.attempt, deferrals: record.deferrals,
      cameEarly: record.cameEarly, devices: record.devices.map { $0.movedBack(by: time - now) }, counts: record.counts)
    record.writtenAt = now
    return record
  }

  private static func read(from reader: inout JSONReader, recordTime: UnixTime) throws(JSONError) -> RetryRecord {
    var (part, parts, deferrals): (Int64?, Int64, Int64?) = (nil, 1, nil)
    var attempt: AttemptID?
    var cameEarly = false
    var request: ArraySlice<UInt8>?
    var devices: [Device] = []
    var counts = OutcomeCounts()
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "part": part = try reader.readInteger()
      case "parts":
        parts = try reader.readInteger()
        guard (1...Int64(StatusRecord.maximumParts)).contains(parts) else {
          throw reader.error("must be 1 to \(StatusRecord.maximumParts)")
        }
      case "attempt":
        attempt = AttemptID(try reader.readString())
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
      case "send":
        guard try reader.nextKind() == .object else { throw reader.error("must be an object") }
        // Its grammar is checked when it is decoded, from depth 0 again: what a send may nest fits here, too.
        request = try reader.readUnchecked()
      default: try reader.skipValue()
      }
    }
    guard let part, (0..<parts).contains(part) else {
      throw JSONError(field: "part", problem: "must be 0 to \(parts - 1)")
    }
    guard parts == 1 || attempt != nil else { throw JSONError(field: "attempt", problem: "is missing") }
    guard let deferrals else { throw JSONError(field: "deferrals", problem: "is missing") }
    guard !devices.isEmpty else { throw JSONError(field: "devices", problem: "must not be empty") }
    guard let request else { throw JSONError(field: "send", problem: "is missing") }
    do throws(RecordError) {
      // What was accepted once may have become a little longer by being written anew.
      let send = try SendRequest.decode(request, recordTime: recordTime, maximumSize: maximumRecordSize)
      return RetryRecord(
        send: send, part: Int(part), parts: Int(parts), attempt: attempt, deferrals: Int(deferrals),
        cameEarly: cameEarly,
        devices: devices, counts: counts)
    } catch {
      throw JSONError(field: "send", problem: error.detail)
    }
  }

  /// How long from `now` on the record is to be held: all that whoever holds it must know; 0 or less when it is due.
  /// Never longer than its writer wanted when it was written; of a record that `cameEarly` just so long, whatever the
  /// present moment is. Throws where the envelope, `notBefore` or `cameEarly` cannot be used; whether `decode` takes
  /// the rest of the record is not looked at.
  package static func wait(of value: ArraySlice<UInt8>, at now: UnixTime) throws(RecordError) -> Duration {
    let (event, hold) = try CloudEvent.read(value, as: .retry, maximumSize: maximumRecordSize) {
      (reader) throws(JSONError) in
      var (time, cameEarly): (UnixTime?, Bool) = (nil, false)
      try reader.readObject { (key, reader) throws(JSONError) in
        switch key {
        case "notBefore": time = try reader.readTime()
        case "cameEarly": cameEarly = try reader.readBoolean()
        // As in `decode`: what a send may nest must not be too deep here.
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

extension RetryRecord.Waiting {
  fileprivate func append(to output: inout [UInt8]) {
    output.append(literal: #"{"registration":"#)
    output.appendJSON(registration)
    output.append(literal: #","platform":"#)
    output.appendJSON(platform.rawValue)
    output.append(literal: #","notBefore":"#)
    output.appendJSON(notBefore)
    output.append(literal: #","attempts":"#)
    output.appendJSON(attempts)
    output.append(literal: #","heldAttempts":"#)
    output.appendJSON(heldAttempts)
    output.append(literal: #","waits":"#)
    output.appendJSON(waits)
    if wasUnanswered { output.append(literal: #","unanswered":true"#) }
    if let firstAttemptAt {
      output.append(literal: #","firstAttemptAt":"#)
      output.appendJSON(firstAttemptAt)
    }
    if !reason.isEmpty {
      output.append(literal: #","reason":"#)
      output.appendJSON(reason)
    }
    if status != 0 {
      output.append(literal: #","status":"#)
      output.appendJSON(status)
    }
    if contradictions != 0 {
      output.append(literal: #","contradictions":"#)
      output.appendJSON(contradictions)
    }
    output.append(UInt8(ascii: "}"))
  }
}

extension RetryRecord.Device {
  /// The same, with its times that much earlier.
  fileprivate func movedBack(by offset: Duration) -> Self {
    guard case .waiting(let device) = self else { return self }
    return .waiting(
      RetryRecord.Waiting(
        registration: device.registration, platform: device.platform, notBefore: device.notBefore + (.zero - offset),
        attempts: device.attempts, heldAttempts: device.heldAttempts, waits: device.waits,
        wasUnanswered: device.wasUnanswered,
        firstAttemptAt: device.firstAttemptAt.map { $0 + (.zero - offset) }, reason: device.reason,
        status: device.status,
        contradictions: device.contradictions))
  }

  /// Reads one of `devices`: with an `outcome` it is a result, without one it waits.
  fileprivate static func read(from reader: inout JSONReader) throws(JSONError) -> Self {
    var (registration, platform, outcome): (RegistrationID?, Platform?, DeviceResult.Outcome?)
    var (notBefore, firstAttemptAt): (UnixTime?, UnixTime?)
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
      case "platform": platform = Platform(rawValue: try reader.readString())
      case "outcome": outcome = DeviceResult.Outcome(rawValue: try reader.readString())
      case "notBefore": notBefore = try reader.readTime()
      case "firstAttemptAt": firstAttemptAt = try reader.readTime()
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
          attempts: attempts))
    }
    guard let notBefore else { throw reader.error("must have an outcome or a notBefore") }
    return .waiting(
      RetryRecord.Waiting(
        registration: registration, platform: platform, notBefore: notBefore, attempts: attempts,
        heldAttempts: min(heldAttempts, attempts), waits: waits, wasUnanswered: wasUnanswered,
        firstAttemptAt: firstAttemptAt,
        reason: reason, status: status, contradictions: contradictions))
  }
}
