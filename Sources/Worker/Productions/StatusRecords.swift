import FanfareCore

/// Spreads the results of one send over status records, each well below Kafka's largest message.
struct StatusParts {
  private let devices: Int
  private let limit: Int

  /// Divides `devices` devices, at most `limit` of them in a record.
  init(devices: Int, limit: Int) {
    self.devices = devices
    self.limit = limit
  }

  /// The number of records: at least one, even without devices.
  var count: Int { devices <= limit ? 1 : (devices - 1) / limit + 1 }

  /// The devices of one record.
  subscript(number: Int) -> Range<Int> {
    let first = number * limit
    return first..<(first + min(limit, devices - first))
  }
}

/// The part of a send that a status record reports.
struct StatusPart {
  var part = 0
  var parts = 1
  var attempt: DispatchID?
  /// The outcomes of further devices of the part, which are not listed.
  var counts = OutcomeCounts()
}

extension StatusRecord {
  init(
    of send: SendRequest, as state: State, _ part: StatusPart = StatusPart(), span: Int = 1, devices: [DeviceResult],
    at now: UnixTime, traceparent: String? = nil, times: SendTimes = SendTimes()
  ) {
    self.init(
      send: send.id, hub: send.hub, part: part.part, parts: part.parts, span: span, attempt: part.attempt,
      state: state,
      sender: send.sender, audience: send.audience, acceptedAt: send.acceptedAt, settledAt: now, devices: devices,
      counts: part.counts, traceparent: traceparent ?? send.traceparent, tracestate: send.tracestate, times: times)
  }

  /// The same record with its devices only counted; nil if it lists none.
  var shortened: StatusRecord? {
    guard !devices.isEmpty else { return nil }
    var counts = counts
    counts.add(OutcomeCounts(devices))
    return StatusRecord(
      send: send, hub: hub, part: part, parts: parts, attempt: attempt, state: state, sender: sender,
      audience: audience, acceptedAt: acceptedAt, settledAt: settledAt, devices: [], counts: counts,
      traceparent: traceparent, tracestate: tracestate, times: times)
  }
}
