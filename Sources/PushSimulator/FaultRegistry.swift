import Synchronization

/// The faults in force. Of several that fit a request the oldest one decides how it ends; the milder ones (latency,
/// GOAWAY, stream limit) add to each other. Callable from any thread.
package final class FaultRegistry: Sendable {
  private let limit: Int
  private let rules = Mutex(Rules())
  /// Spares the lock while there is no fault, which is the rule.
  private let hasRules = Atomic<Bool>(false)

  private struct Rules {
    var list: [Rule] = []
    var lastNumber = 0

    mutating func forgetWhatIsOver() { list.removeAll { $0.fault.count == 0 } }
  }

  /// One fault in force.
  package struct Rule: Sendable {
    /// Its number, for removing it.
    package let id: Int
    /// The fault; its `count` is what is left.
    package fileprivate(set) var fault: Fault
    /// How many requests have met it.
    package fileprivate(set) var hits = 0
    /// Requests that fitted, for spreading the share evenly.
    fileprivate var seen = 0
  }

  /// What faults do to one request.
  struct Effects {
    var ending: Fault.Action?
    var delay: Duration = .zero
    var goAway = false
    var streamLimit: Int?
  }

  /// A registry for at most `limit` faults at a time.
  init(limit: Int) {
    self.limit = limit
  }

  /// Puts a fault in force and gives its number; nil when there are too many already.
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

  /// The faults in force, oldest first.
  package var list: [Rule] { rules.withLock { $0.list } }

  /// Removes a fault; false when it was not in force.
  @discardableResult
  package func remove(_ id: Int) -> Bool {
    rules.withLock { rules in
      let before = rules.list.count
      rules.list.removeAll { $0.id == id }
      hasRules.store(!rules.list.isEmpty, ordering: .releasing)
      return rules.list.count < before
    }
  }

  /// Removes all faults.
  package func removeAll() {
    rules.withLock { rules in
      rules.list = []
      hasRules.store(false, ordering: .releasing)
    }
  }

  /// Whether a new connection is refused in its TLS handshake; counts it against the fault that does so.
  func refusesHandshake(of service: SimulatedService) -> Bool {
    guard hasRules.load(ordering: .acquiring) else { return false }
    return rules.withLock { rules in
      var effects: Effects?
      for index in rules.list.indices
      where rules.list[index].fault.action == .refuseHandshake && rules.list[index].fault.service == service {
        rules.list[index].apply(to: &effects)
        if effects != nil { break }
      }
      rules.forgetWhatIsOver()
      hasRules.store(!rules.list.isEmpty, ordering: .releasing)
      return effects != nil
    }
  }

  /// What is to be done to a request; counts it against the faults it meets. Nil, and cheap, when none fits.
  func effects(on service: SimulatedService, handle: String) -> Effects? {
    guard hasRules.load(ordering: .acquiring) else { return nil }
    return rules.withLock { rules in
      var effects: Effects?
      for index in rules.list.indices where rules.list[index].fits(service, handle) {
        if rules.list[index].isMild || effects?.ending == nil { rules.list[index].apply(to: &effects) }
      }
      rules.forgetWhatIsOver()
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

  fileprivate func fits(_ service: SimulatedService, _ handle: String) -> Bool {
    fault.service == service && fault.action != .refuseHandshake && fault.count != 0
      && (fault.handlePrefix.map { handle.hasPrefix($0) } ?? true)
  }

  fileprivate mutating func apply(to effects: inout FaultRegistry.Effects?) {
    seen += 1
    if let share = fault.share {
      // The request is hit when the share of all so far passes another whole number.
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
