import FanfareCore

/// What every store knows of steering.
extension BroadcastControl {
  /// Reads what was stored. Throws where no release has written it.
  init(state: String, cause: String) throws {
    guard let state = State(rawValue: state), let cause = Cause(rawValue: cause) else {
      throw RegistryError(.unavailable, "the registry holds a state of a broadcast that this release does not know")
    }
    self.init(state, because: cause)
  }

  /// Whether this gives way to what is wanted now: what was cancelled stays cancelled, and failures change nothing but
  /// what runs.
  func accepts(_ wanted: BroadcastControl) -> Bool {
    state != .cancelled && (wanted.cause != .failures || state == .running)
  }
}
