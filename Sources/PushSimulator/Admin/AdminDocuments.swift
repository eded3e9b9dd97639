package import FanfareCore

/// A fault in the JSON of the admin routes: flat, with the members that its action needs.
struct FaultDocument: Codable, Sendable {
  var id: Int?
  var service: String
  var action: String
  var handlePrefix: String?
  var count: Int?
  var share: Double?
  /// For `answer`.
  var status: Int?
  /// For `answer`: the service's own word.
  var reason: String?
  /// For `answer`: seconds.
  var retryAfter: Int?
  /// For `answer` with 410 of APNs: milliseconds since 1970.
  var timestamp: Int64?
  /// For `latency`.
  var milliseconds: Int64?
  /// For `reset`.
  var code: UInt32?
  /// For `stream-limit`.
  var streams: Int?
  /// The number of requests that it was applied to.
  var hits: Int?

  /// Why a document is no fault.
  struct Invalid: Error, CustomStringConvertible {
    let description: String
  }

  init(_ fault: Fault) {
    service = fault.service.rawValue
    handlePrefix = fault.handlePrefix
    count = fault.count
    share = fault.share
    switch fault.action {
    case .answer(let status, let reason, let retryAfter, let timestamp):
      action = "answer"
      self.status = status
      self.reason = reason
      self.retryAfter = retryAfter
      self.timestamp = timestamp?.milliseconds
    case .latency(let delay):
      action = "latency"
      milliseconds = delay.components.seconds * 1000 + delay.components.attoseconds / 1_000_000_000_000_000
    case .goAway: action = "goaway"
    case .dropConnection: action = "drop"
    case .acceptAndDrop: action = "accept-and-drop"
    case .silence: action = "silence"
    case .reset(let code):
      action = "reset"
      self.code = code
    case .streamLimit(let streams):
      action = "stream-limit"
      self.streams = streams
    case .refuseHandshake: action = "refuse-handshake"
    }
  }

  init(_ rule: FaultRegistry.Rule) {
    self.init(rule.fault)
    id = rule.id
    hits = rule.hits
  }

  func fault() throws(Invalid) -> Fault {
    guard let service = SimulatedService(rawValue: service) else {
      throw Invalid(
        description: "service must be one of \(SimulatedService.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    if let count, count < 1 { throw Invalid(description: "count must be at least 1") }
    if let share, !(share > 0 && share <= 1) { throw Invalid(description: "share must be more than 0 and at most 1") }
    guard action != "refuse-handshake" || service.hasListener else {
      let others = SimulatedService.allCases.filter(\.hasListener).map(\.rawValue)
      throw Invalid(description: "the action refuse-handshake is for \(others.series("and")) only")
    }
    guard handlePrefix == nil || (service.platform != nil && action != "refuse-handshake") else {
      throw Invalid(
        description: "handlePrefix is for requests with a handle: not for token endpoints, and not for refuse-handshake"
      )
    }
    return Fault(service, try faultAction(), handlePrefix: handlePrefix, count: count, share: share)
  }

  private func faultAction() throws(Invalid) -> Fault.Action {
    switch action {
    case "answer":
      let status = try require(status, "status", in: 200...599)
      if let retryAfter { _ = try require(retryAfter, "retryAfter", in: 0...86_400) }
      return .answer(
        status: status, reason: reason, retryAfter: retryAfter, timestamp: timestamp.map { UnixTime(milliseconds: $0) })
    case "latency": return .latency(.milliseconds(try require(milliseconds, "milliseconds", in: 1...600_000)))
    case "goaway": return .goAway
    case "drop": return .dropConnection
    case "accept-and-drop": return .acceptAndDrop
    case "silence": return .silence
    case "reset": return .reset(code: try require(code, "code", in: 0...UInt32.max))
    case "stream-limit": return .streamLimit(try require(streams, "streams", in: 0...1_000_000))
    case "refuse-handshake": return .refuseHandshake
    default:
      throw Invalid(
        description:
          "action must be one of answer, latency, goaway, drop, accept-and-drop, silence, reset, stream-limit, refuse-handshake"
      )
    }
  }

  private func require<Value: Comparable>(_ value: Value?, _ name: String, in range: ClosedRange<Value>)
    throws(Invalid)
    -> Value
  {
    guard let value, range.contains(value) else {
      throw Invalid(description: "\(name) must be \(range.lowerBound) to \(range.upperBound) for the action \(action)")
    }
    return value
  }
}

/// The documents of the admin routes.
enum StoreJSON {
  /// `{"notifications":[…]}`, oldest first.
  static func notifications(_ notifications: [ReceivedNotification]) -> [UInt8] {
    JSONWriter.object { $0.member("notifications", notifications) }
  }

  /// One event of the stream of notifications (WHATWG HTML, server-sent events).
  static func event(_ notification: ReceivedNotification) -> [UInt8] {
    // A payload may contain line ends between its JSON tokens; an event's data may not.
    let data = JSONWriter.bytes(of: notification).map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }
    return Array("event: notification\ndata: ".utf8) + data + Array("\n\n".utf8)
  }

  /// `{"devices":[{"platform","handle","received"}…],"next":…}`, without `next` on the last page.
  static func devices(_ devices: [DeviceStore.Device], limit: Int) -> [UInt8] {
    JSONWriter.object { json in
      json.member("devices", devices)
      if devices.count == limit, let last = devices.last { json.member("next", "\(last.platform):\(last.handle)") }
    }
  }

  /// `{"accepted","duplicates","devices","services":{NAME:{"accepted","duplicates","answers":{…}}}}`.
  static func counts(_ counts: SimulatorCounts) -> [UInt8] {
    JSONWriter.object { json in
      json.member("accepted", counts.accepted)
      json.member("duplicates", counts.duplicates)
      json.member("devices", counts.devices)
      json.object("services") { json in
        for service in SimulatedService.allCases {
          json.object(named: service.rawValue) { json in
            json.member("accepted", counts[service].accepted)
            json.member("duplicates", counts[service].duplicates)
            json.object("answers") { json in
              for answer in counts[service].answers.sorted(by: { $0.key < $1.key }) {
                json.member(named: answer.key, answer.value)
              }
            }
          }
        }
      }
    }
  }

  /// `[{"platform","prefix","meaning"}…]`.
  static func prefixes() -> [UInt8] { JSONWriter.bytes(of: HandlePrefix.table) }

  /// The URLs of all endpoints.
  static func endpoints(_ endpoints: SimulatorEndpoints, of services: [any SimulatedPushService]) -> [UInt8] {
    JSONWriter.object { json in
      for service in services {
        for (name, url) in service.addresses(endpoints) { json.member(named: name, url) }
      }
      json.member("admin", endpoints.adminURL)
    }
  }
}

extension DeviceStore.Device: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("platform", platform)
      json.member("handle", handle)
      json.member("received", received)
    }
  }
}

extension HandlePrefix: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("platform", platform)
      json.member("prefix", prefix)
      json.member("meaning", meaning)
    }
  }
}

/// `{"platform","handle","time","pushId","headers":{…},"payload":…}`. A payload that is not JSON becomes a string.
extension ReceivedNotification: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("platform", platform)
      json.member("handle", handle)
      json.member("time", time)
      json.member("pushId", pushID)
      json.object("headers") { json in
        for field in headers { json.member(named: field.name.lowercased(), field.value) }
      }
      if hasJSONPayload { json.member("payload", json: payload) } else { json.member("payload", text) }
    }
  }

  private var hasJSONPayload: Bool {
    do {
      var reader = try JSONReader(payload[...])
      try reader.skipValue()
      try reader.finish()
      return true
    } catch {
      return false
    }
  }
}
