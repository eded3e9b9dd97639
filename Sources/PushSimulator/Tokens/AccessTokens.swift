import FanfareCore
import Synchronization

/// The valid bearer tokens of one token endpoint.
final class AccessTokens: Sendable {
  private let prefix: String
  private let lifetime: Duration
  private let clock: any WallClock
  private let state = Mutex(State())

  private struct State {
    var expiries: [String: UnixTime] = [:]
    /// In the order of issue, which is the order of expiry.
    var order: [String] = []
  }

  /// The most valid tokens; beyond it the oldest end early.
  static let limit = 10_000

  init(prefix: String, lifetime: Duration, clock: any WallClock) {
    self.prefix = prefix
    self.lifetime = lifetime
    self.clock = clock
  }

  var seconds: Int64 { lifetime.components.seconds }

  /// Issues a new token.
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

  /// Whether the token was issued here and is still valid.
  func isGood(_ token: String) -> Bool {
    guard let expiry = state.withLock({ $0.expiries[token] }) else { return false }
    return clock.now() < expiry
  }

  /// Expires all tokens.
  func expireAll() { state.withLock { $0 = State() } }
}
