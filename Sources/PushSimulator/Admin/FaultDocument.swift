import FanfareCore
import Hummingbird

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
    guard action != "refuse-handshake" || service == .apns || service == .fcm else {
      throw Invalid(description: "the action refuse-handshake is for apns and fcm only")
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
      throw Invalid(
        description: "\(name) must be \(range.lowerBound) to \(range.upperBound) for the action \(action)")
    }
    return value
  }
}

extension FaultDocument: ResponseCodable {}
