package import FanfareCore
import Synchronization

/// The active faults.
///
/// If several match a request, the oldest decides how it ends; the milder ones (latency, GOAWAY, stream limit) add up.
/// Callable from any thread.
package final class FaultRegistry: Sendable {
  private let limit: Int
  private let rules = Mutex(Rules())
  /// Avoids the lock while there is no fault, the usual case.
  private let hasRules = Atomic<Bool>(false)

  private struct Rules {
    var list: [Rule] = []
    var lastNumber = 0

    mutating func removeUsedUp() { list.removeAll { $0.fault.count == 0 } }
  }

  /// An active fault.
  package struct Rule: Sendable {
    package let id: Int
    /// The fault; its `count` is the number of requests left.
    package fileprivate(set) var fault: Fault
    /// The number of requests that it was applied to.
    package fileprivate(set) var hits = 0
    /// The number of requests that matched, for spreading the share evenly.
    fileprivate var seen = 0
  }

  /// The combined effects of all faults on one request.
  struct Effects {
    var ending: Fault.Action?
    var delay: Duration = .zero
    var goAway = false
    var streamLimit: Int?
  }

  /// A registry of at most `limit` faults.
  init(limit: Int) { self.limit = limit }

  /// Adds a fault and returns its number; nil if the registry is full.
  @discardableResult
  package func add(_ fault: Fault) -> Int? {
    rules.withLock { rules in
      guard rules.list.count < limit else { return nil }
      rules.lastNumber += 1
      rules.list.append(Rule(id: rules.lastNumber, fault: fault))
      hasRules.store(true, ordering: .releasing)
      return rules.lastNumber
    }
  }

  /// The active faults, oldest first.
  package var list: [Rule] { rules.withLock { $0.list } }

  /// Removes a fault; returns false if it is not active.
  @discardableResult
  package func remove(_ id: Int) -> Bool {
    rules.withLock { rules in
      let before = rules.list.count
      rules.list.removeAll { $0.id == id }
      hasRules.store(!rules.list.isEmpty, ordering: .releasing)
      return rules.list.count < before
    }
  }

  package func removeAll() {
    rules.withLock { rules in
      rules.list = []
      hasRules.store(false, ordering: .releasing)
    }
  }

  /// Whether the TLS handshake of a new connection is refused; counts it for the fault that does so.
  func refusesHandshake(of service: SimulatedService) -> Bool {
    guard hasRules.load(ordering: .acquiring) else { return false }
    return rules.withLock { rules in
      var effects: Effects?
      for index in rules.list.indices
      where rules.list[index].fault.action == .refuseHandshake && rules.list[index].fault.service == service {
        rules.list[index].apply(to: &effects)
        if effects != nil { break }
      }
      rules.removeUsedUp()
      hasRules.store(!rules.list.isEmpty, ordering: .releasing)
      return effects != nil
    }
  }

  /// The effects on a request, counted for the faults that apply; nil, at little cost, if there are none.
  func effects(on service: SimulatedService, handle: String) -> Effects? {
    guard hasRules.load(ordering: .acquiring) else { return nil }
    return rules.withLock { rules in
      var effects: Effects?
      for index in rules.list.indices where rules.list[index].matches(service, handle) {
        if rules.list[index].isMild || effects?.ending == nil { rules.list[index].apply(to: &effects) }
      }
      rules.removeUsedUp()
      hasRules.store(!rules.list.isEmpty, ordering: .releasing)
      return effects
    }
  }
}

extension FaultRegistry.Rule {
  fileprivate var isMild: Bool {
    switch fault.action {
    case .latency, .goAway, .streamLimit: true
    case .answer, .dropConnection, .acceptAndDrop, .silence, .reset, .refuseHandshake: false
    }
  }

  fileprivate func matches(_ service: SimulatedService, _ handle: String) -> Bool {
    fault.service == service && fault.action != .refuseHandshake && fault.count != 0
      && (fault.handlePrefix.map { handle.hasPrefix($0) } ?? true)
  }

  fileprivate mutating func apply(to effects: inout FaultRegistry.Effects?) {
    seen += 1
    if let share = fault.share {
      // The fault applies when the share of all matching requests reaches another whole number.
      guard Int(Double(seen) * share) > Int(Double(seen - 1) * share) else { return }
    }
    hits += 1
    fault.count? -= 1
    var changed = effects ?? .init()
    switch fault.action {
    case .latency(let delay): changed.delay += delay
    case .goAway: changed.goAway = true
    case .streamLimit(let limit): changed.streamLimit = limit
    default: changed.ending = fault.action
    }
    effects = changed
  }
}

/// A fault ordered by a test or a person: what one service does instead of, or besides, its usual answer.
package struct Fault: Hashable, Sendable {
  /// The effect of the fault on a request.
  package enum Action: Hashable, Sendable {
    /// Answers with this status. `reason` is the service's own word (`TooManyRequests`, `QUOTA_EXCEEDED`,
    /// `channelthrottled`), by default the usual one; `retryAfter` is in seconds; `timestamp` is for 410 of APNs, by
    /// default now.
    case answer(status: Int, reason: String? = nil, retryAfter: Int? = nil, timestamp: UnixTime? = nil)
    /// Delays the usual answer. Delays of several faults add up.
    case latency(Duration)
    /// Answers as usual, and first sends GOAWAY, or `Connection: close` in HTTP/1.1.
    case goAway
    /// Drops the connection without accepting the push.
    case dropConnection
    /// Accepts the push and drops the connection before the answer, so that the outcome is unknown to the sender.
    case acceptAndDrop
    /// Never answers, and does not accept the push.
    case silence
    /// Sends RST_STREAM with this code (7 is REFUSED_STREAM) without accepting the push. In HTTP/1.1 the connection is
    /// dropped.
    case reset(code: UInt32)
    /// Answers as usual, and sets the connection's limit of concurrent streams.
    case streamLimit(Int)
    /// Refuses the TLS handshake of new connections, for services with a listener of their own. It cannot have a handle
    /// prefix, and open connections are not affected.
    case refuseHandshake
  }

  package let service: SimulatedService
  package var action: Action
  /// Applies only to handles with this prefix, in the form in which the store compares handles; nil for all.
  package let handlePrefix: String?
  /// Applies to this many requests and then ends; nil until it is removed.
  package var count: Int?
  /// Applies to this share of requests, 0…1, spread evenly; nil for all.
  package var share: Double?

  /// `handlePrefix` may be in the platform's own form: any case for APNs, a URI for a WNS channel. Requests to token
  /// endpoints have no handle.
  package init(
    _ service: SimulatedService, _ action: Action, handlePrefix: String? = nil, count: Int? = nil, share: Double? = nil
  ) {
    self.service = service
    self.action = action
    self.handlePrefix = handlePrefix.map { prefix in
      service.platform.map { DeviceStore.normalized(prefix, platform: $0) } ?? prefix
    }
    self.count = count
    self.share = share
  }
}
