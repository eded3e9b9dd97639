import FanfareCore
import HTTPServer
import Synchronization

/// Limits failed logins of each address, of each user at an address, and of each user, in bounded memory.
///
/// A password is checked only while all three budgets have room. The budget of a user at all addresses together is much
/// larger than that at one address: it bounds guessing that is spread over many addresses, and a burst of failures at a
/// few of them does not keep the user waiting at another one.
///
/// Budgets are those of this process (GCRA, as `RateLimit`). `block` applies the user's quota of a day, which all front
/// ends share. With the defaults, failures at two addresses that go on for a day use that quota up: then the user waits
/// wherever it is not known.
///
/// Where a user was authenticated lately, it is *known* and needs no room, also when the quota is used up. After as
/// many failures as the user's budget at the address has, it is a stranger there again.
///
/// Passwords can be guessed, tokens and certificates cannot: those are always checked, and only the answer to a wrong
/// one changes when the address has no room.
final class LoginGuard: Sendable {
  /// A login that was admitted. It must be settled by `succeed`, `fail` or `abandon`.
  enum Admission {
    /// The digest of the user at its address.
    case known(Int)
    /// A failure of all budgets is taken in advance.
    case stranger(user: Int, address: Int, pair: Int)
    /// Credentials that cannot be guessed.
    case unguessable(ClientAddress)

    /// The digest of a user at its address, which is known after the login has succeeded; nil if that plays no part.
    var login: Int? {
      switch self {
      case .known(let pair), .stranger(_, _, let pair): pair
      case .unguessable: nil
      }
    }

    /// Whether the user is known at its address.
    var isKnown: Bool { if case .known = self { true } else { false } }
  }

  private struct State {
    /// The theoretical arrival time of the next failure, by the digest of an address, a user, or a user at an address.
    var arrivals: [Int: ContinuousClock.Instant] = [:]
    /// The digests of users at addresses.
    var known: ExpiringCache<Int, Void, ContinuousClock.Instant>
  }

  private let limits: LoginLimits
  private let state: Mutex<State>

  init(limits: LoginLimits) {
    self.limits = limits
    state = Mutex(State(known: ExpiringCache(capacity: limits.capacity)))
  }

  /// The number of budgets that are remembered, including some that are whole again.
  var budgets: Int { state.withLock { $0.arrivals.count } }

  /// Admits a login.
  ///
  /// A stranger takes a failure of all budgets in advance: logins at the same time cannot exceed them.
  /// Throws `.tooManyFailures`.
  func admit(_ credentials: Credentials, hub: String, from address: ClientAddress) throws(Refusal) -> Admission {
    guard case .basic(let basic) = credentials else { return .unguessable(address) }
    let network = address.network
    let pair = KeyedDigest.make {
      $0.combine(hub)
      $0.combine(exactly: basic.user)
      $0.combine(network)
    }
    let now = limits.now()
    let admission: Result<Admission, Refusal> = state.withLock { state in
      if state.known.value(pair, at: now) != nil { return .success(.known(pair)) }
      let user = KeyedDigest.make {
        $0.combine(hub)
        $0.combine(exactly: basic.user)
      }
      let address = KeyedDigest.make { $0.combine(network) }
      let budgets = [
        (address, limits.perAddress), (pair, limits.perUser), (user, limits.perUserAtAllAddresses),
      ]
      let delay = budgets.map { wait(for: $0, $1, state, at: now) }.max() ?? .zero
      guard delay == .zero else { return .failure(.tooManyFailures(retryAfter: delay)) }
      for (key, limit) in budgets { take(key, limit, &state, at: now) }
      return .success(.stranger(user: user, address: address, pair: pair))
    }
    return try admission.get()
  }

  /// Whether a login of the user at its address would be admitted as that of a known one.
  func isKnown(_ login: Int) -> Bool {
    let now = limits.now()
    return state.withLock { $0.known.value(login, at: now) != nil }
  }

  /// Records that the credentials were right.
  func succeed(_ admission: Admission) {
    guard case .stranger(_, _, let pair) = admission else { return }
    abandon(admission)
    let now = limits.now()
    state.withLock { state in
      state.known.insert((), for: pair, from: now, to: now + limits.knownLifetime)
      state.arrivals[pair] = nil
    }
  }

  /// Records that the credentials were not checked: takes no failure.
  func abandon(_ admission: Admission) {
    guard case .stranger(let user, let address, let pair) = admission else { return }
    let now = limits.now()
    state.withLock { state in
      refund(user, limits.perUserAtAllAddresses, &state, at: now)
      refund(pair, limits.perUser, &state, at: now)
      refund(address, limits.perAddress, &state, at: now)
    }
  }

  /// Records that the credentials were wrong. Throws `.tooManyFailures` for a token of an address without room.
  func fail(_ admission: Admission) throws(Refusal) {
    let now = limits.now()
    switch admission {
    case .stranger: break
    case .known(let pair):
      state.withLock { state in
        take(pair, limits.perUser, &state, at: now)
        if wait(for: pair, limits.perUser, state, at: now) > .zero { state.known[pair] = nil }
      }
    case .unguessable(let address):
      let network = address.network
      let key = KeyedDigest.make { $0.combine(network) }
      let delay = state.withLock { state -> Duration in
        let delay = wait(for: key, limits.perAddress, state, at: now)
        if delay == .zero { take(key, limits.perAddress, &state, at: now) }
        return delay
      }
      guard delay == .zero else { throw .tooManyFailures(retryAfter: delay) }
    }
  }

  /// Records a token that could not be checked, because its key may be a new one that is not fetched yet.
  ///
  /// Many tokens of a rotation are right: it takes a part of a failure from the address, and is never refused for it.
  func suspect(_ admission: Admission) {
    guard case .unguessable(let address) = admission else { return }
    let network = address.network
    let key = KeyedDigest.make { $0.combine(network) }
    let now = limits.now()
    state.withLock { take(key, limits.perAddress * LoginLimits.unfetchedPerFailure, &$0, at: now) }
  }

  /// Refuses the user's logins where it is not known, for `delay`: a quota that all front ends share is used up.
  func block(_ admission: Admission, for delay: Duration) {
    guard case .stranger(let user, _, _) = admission else { return }
    // `wait` returns arrival − now + window / limit − window. This arrival makes it return `delay`.
    let end = limits.now() + delay + limits.window - limits.window / limits.perUserAtAllAddresses
    state.withLock { $0.arrivals[user] = max(end, $0.arrivals[user] ?? end) }
  }

  /// The time until the budget has room for a failure.
  private func wait(for key: Int, _ limit: Int, _ state: State, at now: ContinuousClock.Instant) -> Duration {
    guard let arrival = state.arrivals[key] else { return .zero }
    return max(.zero, arrival - now + limits.window / limit - limits.window)
  }

  private func take(_ key: Int, _ limit: Int, _ state: inout State, at now: ContinuousClock.Instant) {
    let arrival = max(now, state.arrivals[key] ?? now)
    // At most a whole budget: failures of known users, which are not taken in advance, could add up to hours. The end
    // of a block stays.
    state.arrivals[key] = max(arrival, min(arrival + limits.window / limit, now + limits.window))
    guard state.arrivals.count > limits.capacity else { return }
    // Budgets that are whole are dropped; if others fill the memory, the half that becomes whole first.
    state.arrivals = state.arrivals.filter { $0.value > now }
    guard state.arrivals.count > limits.capacity / 2 else { return }
    let kept = state.arrivals.sorted { $0.value > $1.value }.prefix(limits.capacity / 2)
    state.arrivals = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
  }

  private func refund(_ key: Int, _ limit: Int, _ state: inout State, at now: ContinuousClock.Instant) {
    guard let arrival = state.arrivals[key] else { return }
    let earlier = arrival - limits.window / limit
    state.arrivals[key] = earlier > now ? earlier : nil
  }
}

extension Refusal {
  fileprivate static func tooManyFailures(retryAfter delay: Duration) -> Refusal {
    let seconds = max(1, Int(clamping: (delay / .seconds(1)).rounded(.up)))
    var refusal = Refusal(
      .tooManyFailures, "too many logins of this user or from this address have failed; try again in \(seconds) s")
    refusal.retryAfter = seconds
    refusal.quota = .failedLogins
    return refusal
  }
}

/// The budgets of failed logins of a front end.
package struct LoginLimits: Sendable {
  /// The most failures of one address within `window`; of IPv6 of one /64 network. At least 1.
  package var perAddress = 100
  /// The most failures of one user at one address within `window`. At least 1.
  package var perUser = 20
  /// The most failures of one user at all addresses within `window`.
  package var perUserAtAllAddresses: Int { perUser * 20 }
  /// The tokens whose key was not fetched yet that count as one failure of their address.
  static let unfetchedPerFailure = 20
  /// The time in which a used budget becomes whole again.
  package var window: Duration = .seconds(600)
  /// For how long at least a user is known at an address that has authenticated it.
  package var knownLifetime: Duration = .seconds(86_400)
  /// The most budgets, and the most known users, that are remembered.
  package var capacity = 100_000
  /// The clock; tests replace it.
  package var now: @Sendable () -> ContinuousClock.Instant = { .now }

  package init() {}
}
