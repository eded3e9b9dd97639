import FanfareCore
import Synchronization

/// What APNs remembers of each connection: whether a push has succeeded on it, the key that it is bound to, and the
/// provider token in use.
final class APNsConnections: Sendable {
  /// Apple: a token may be replaced once in 20 minutes on a connection.
  private static let tokenUpdateInterval: Duration = .seconds(20 * 60)
  /// Connections remembered. Numbers grow, so the smallest are those of connections long closed; one forgotten too
  /// early is only taken for a new one.
  private static let limit = 4096

  private let states = Mutex<[Int: State]>([:])

  private struct State {
    /// The key of the first good token, to which a connection belongs for good. APNs binds it to a family of keys;
    /// which keys are related is not said, so here none are.
    let keyID: String
    var authorization: String
    var updatedAt: UnixTime?
    var hasSucceeded = false
    /// Whether a token has expired on it, after which it is of no use any more.
    var isSpent = false
  }

  /// Why the connection is not to be used with this credential of this key, which is good in itself; nil when it is.
  func complaint(about authorization: String, keyID: @autoclosure () -> String, on connection: Int, now: UnixTime)
    -> APNsReason?
  {
    states.withLock { states in
      guard let state = states[connection] else {
        Self.add(State(keyID: keyID(), authorization: authorization), for: connection, to: &states)
        return nil
      }
      if state.isSpent { return .expiredProviderToken }
      if state.authorization == authorization { return nil }
      guard state.keyID == keyID() else { return .unrelatedKeyIDInToken }
      if let updatedAt = state.updatedAt, now - updatedAt < Self.tokenUpdateInterval {
        return .tooManyProviderTokenUpdates
      }
      states[connection]?.authorization = authorization
      states[connection]?.updatedAt = now
      return nil
    }
  }

  /// Notes that a token has expired on the connection.
  func spend(_ connection: Int) {
    states.withLock { states in
      if states[connection] == nil { Self.add(State(keyID: "", authorization: ""), for: connection, to: &states) }
      states[connection]?.isSpent = true
    }
  }

  /// Notes that a push has succeeded; true when it was the connection's first.
  func didSucceed(_ connection: Int) -> Bool {
    states.withLock { states in
      guard states[connection]?.hasSucceeded == false else { return false }
      states[connection]?.hasSucceeded = true
      return true
    }
  }

  private static func add(_ state: State, for connection: Int, to states: inout [Int: State]) {
    if states.count >= limit {
      for old in states.keys.sorted().prefix(limit / 2) { states[old] = nil }
    }
    states[connection] = state
  }
}
