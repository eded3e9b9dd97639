import FanfareCore
import Synchronization

/// The bearer tokens that one token endpoint has given out and that are still good.
final class AccessTokens: Sendable {
  private let prefix: String
  private let lifetime: Duration
  private let clock: any WallClock
  private let state = Mutex(State())

  private struct State {
    var expiries: [String: UnixTime] = [:]
    /// In the order they were given out, which is the order they expire in.
    var order: [String] = []
  }

  /// As many tokens may be good at a time; the oldest goes before its time when there are more.
  static let limit = 10_000

  /// Tokens that begin with `prefix` and live for `lifetime`.
  init(prefix: String, lifetime: Duration, clock: any WallClock) {
    self.prefix = prefix
    self.lifetime = lifetime
    self.clock = clock
  }

  /// The lifetime in whole seconds.
  var seconds: Int64 { lifetime.components.seconds }

  /// Gives out a new token.
  func issue() -> String {
    let token = prefix + Identifier<AccessTokens>.random().description + Identifier<AccessTokens>.random().description
    let now = clock.now()
    state.withLock { state in
      if state.order.count >= Self.limit {
        let cut = state.order.count - Self.limit / 2
        for old in state.order[..<cut] { state.expiries[old] = nil }
        state.order.removeFirst(cut)
      }
      state.expiries[token] = now + lifetime
      state.order.append(token)
    }
    return token
  }

  /// Whether the token was given out here and is still good.
  func isGood(_ token: String) -> Bool {
    guard let expiry = state.withLock({ $0.expiries[token] }) else { return false }
    return clock.now() < expiry
  }

  /// Ends all tokens at once.
  func expireAll() {
    state.withLock { $0 = State() }
  }
}
