import FanfareCore
import Synchronization

/// What APNs remembers of each connection: whether a push has succeeded on it, and the provider token in use.
final class APNsConnections: Sendable {
  /// Apple: a token may be replaced once in 20 minutes on a connection.
  private static let tokenUpdateInterval: Duration = .seconds(20 * 60)
  /// Connections remembered. Numbers grow, so the smallest are those of connections long closed; one forgotten too early is only told its
  /// stream limit once more.
  private static let limit = 4096

  private let states = Mutex<[Int: State]>([:])

  private struct State {
    var hasSucceeded = false
    var authorization: String
    var updatedAt: UnixTime?
  }

  /// Whether the connection may use this credential, which is good in itself: false when it has changed too often.
  func admits(_ authorization: String, on connection: Int, now: UnixTime) -> Bool {
    states.withLock { states in
      guard let state = states[connection] else {
        if states.count >= Self.limit {
          for old in states.keys.sorted().prefix(Self.limit / 2) { states[old] = nil }
        }
        states[connection] = State(authorization: authorization)
        return true
      }
      if state.authorization == authorization { return true }
      if let updatedAt = state.updatedAt, now - updatedAt < Self.tokenUpdateInterval { return false }
      states[connection]?.authorization = authorization
      states[connection]?.updatedAt = now
      return true
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
}
