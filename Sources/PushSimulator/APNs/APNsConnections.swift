import FanfareCore
import Synchronization

/// The state of each APNs connection: whether a push has succeeded, its key and its provider token.
final class APNsConnections: Sendable {
  /// Apple: a connection's token may be replaced once in 20 minutes.
  private static let tokenUpdateInterval: Duration = .seconds(20 * 60)
  /// The most connections kept. Numbers increase, so the smallest are of connections that closed long ago; one that is
  /// removed too early counts as new.
  private static let limit = 4096

  private let states = Mutex<[Int: State]>([:])

  private struct State {
    /// The key of the first valid token, which stays the connection's key. APNs allows a family of related keys; which
    /// keys are related is undocumented, so here none are.
    let keyID: String
    var authorization: String
    var updatedAt: UnixTime?
    var hasSucceeded = false
    /// Whether a token has expired on the connection, which makes it unusable.
    var isSpent = false
  }

  /// Why this credential, valid in itself, may not be used on the connection; nil if it may.
  func refusal(of authorization: String, keyID: @autoclosure () -> String, on connection: Int, now: UnixTime)
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

  /// A token has expired on the connection.
  func spend(_ connection: Int) {
    states.withLock { states in
      if states[connection] == nil { Self.add(State(keyID: "", authorization: ""), for: connection, to: &states) }
      states[connection]?.isSpent = true
    }
  }

  /// A push has succeeded; returns true for the connection's first.
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
