import FanfareCore

/// A status record as a hook's receiver sees it: a CloudEvent about one work item.
///
/// It has no payload, no audience, no user and no handle: the receiver knows the send by its id, and its devices by
/// their registration ids.
package struct HookEvent: Sendable {
  /// The media type of a request's body: an array of CloudEvents.
  package static let batchType = "application/cloudevents-batch+json"
  package static let type = "fanfare.outcome.v1"
  /// The most devices that one event lists; of more only the counts are given.
  package static let maximumDevices = 100

  let send: SendID
  let json: [UInt8]
  let settledAt: UnixTime

  init(_ record: StatusRecord) {
    send = record.send
    settledAt = record.settledAt
    var counts = OutcomeCounts(record.devices)
    counts.add(record.counts)
    let devices = record.devices.prefix(Self.maximumDevices)
    json = JSONWriter.object(capacity: 512 + devices.count * 160) { json in
      json.member("specversion", "1.0")
      // The id of the record: the same however often the event is delivered.
      let parts = [record.send.description, record.attempt?.description, "\(record.part)"]
      json.member("id", parts.compactMap(\.self).joined(separator: "/"))
      json.member("type", Self.type)
      json.member("source", "/fanfare/hubs/\(record.hub)")
      json.member("subject", record.send)
      json.member("time", record.settledAt)
      json.member("datacontenttype", "application/json")
      // The attributes of CloudEvents' distributed tracing extension.
      json.member("traceparent", ifPresent: record.traceparent)
      json.member("tracestate", ifPresent: record.tracestate)
      json.object("data") { json in
        json.member("send", record.send)
        json.member("hub", record.hub)
        json.member("state", record.state)
        json.member("part", record.part)
        json.member("parts", record.parts)
        if record.span > 1 { json.member("span", record.span) }
        json.member("acceptedAt", record.acceptedAt)
        json.member("settledAt", record.settledAt)
        json.member("counts", counts)
        json.member("devices", Array(devices))
        if record.devices.count > devices.count {
          json.member("devicesOmitted", record.devices.count - devices.count)
        }
      }
    }
  }

  /// The body of a request.
  static func batch(_ events: some Collection<HookEvent>) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(events.reduce(2) { $0 + $1.json.count + 1 })
    for event in events {
      body.append(body.isEmpty ? UInt8(ascii: "[") : UInt8(ascii: ","))
      body += event.json
    }
    body.append(UInt8(ascii: "]"))
    return body
  }
}

extension HookConfiguration {
  /// Whether the hook receives the record.
  func wants(_ record: StatusRecord) -> Bool {
    guard hubs.contains(record.hub) else { return false }
    switch events {
    case .all: return true
    case .settled: return record.state == .settled
    case .failures:
      switch record.state {
      case .expired, .deadLettered, .cancelled: return true
      case .settled, .noTarget:
        return record.devices.contains { $0.outcome != .delivered }
          || record.counts.entries.contains { $0.kind.outcome != .delivered && $0.count > 0 }
      }
    }
  }
}
