import Synchronization

/// A user name and password that several clients share, and that can be replaced while they run.
package final class KafkaPassword: Sendable {
  private struct State {
    var user: String
    var password: String
    var handles: [WeakHandle] = []
  }

  private struct WeakHandle: Sendable {
    weak var handle: Handle?
  }

  private let state: Mutex<State>

  package init(user: String, password: String) {
    state = Mutex(State(user: user, password: password))
  }

  /// The user name and password in use.
  var current: (user: String, password: String) { state.withLock { ($0.user, $0.password) } }

  /// Replaces user name and password. Every client uses them for its next connection; open connections stay.
  ///
  /// - Returns: Whether they differ from those in use.
  /// - Throws: `configuration`, if librdkafka does not accept them. Some clients may have them then.
  package func replace(user: String, password: String) throws(RDKafkaError) -> Bool {
    let handles: [Handle]? = state.withLock { state in
      guard (state.user, state.password) != (user, password) else { return nil }
      (state.user, state.password) = (user, password)
      state.handles.removeAll { $0.handle == nil }
      return state.handles.compactMap(\.handle)
    }
    guard let handles else { return false }
    for handle in handles { try handle.setCredentials(user: user, password: password) }
    return true
  }

  /// Keeps a new handle informed. `used` are the credentials with which it was created.
  func attach(_ handle: Handle, used: (user: String, password: String)) throws(RDKafkaError) {
    let newer: (user: String, password: String)? = state.withLock { state in
      state.handles.removeAll { $0.handle == nil }
      state.handles.append(WeakHandle(handle: handle))
      return used == (state.user, state.password) ? nil : (state.user, state.password)
    }
    if let newer { try handle.setCredentials(user: newer.user, password: newer.password) }
  }
}

extension KafkaPassword: CustomStringConvertible, CustomReflectable {
  package var description: String { "a user name and password" }

  package var customMirror: Mirror { Mirror(self, children: []) }
}
