import FanfareCore
import Synchronization

/// Decides whether a refusal is a reason to replace tokens or connections, or to report a problem.
///
/// A service may refuse the pushes of a single device with the same words as those of a wrong credential. While it
/// accepts other pushes, such an answer must not cost the others their connections or the worker its readiness.
final class RefusalFilter: Sendable {
  /// For this long after an accepted push a single refusal is not believed.
  static let memory: Duration = .seconds(30)
  /// This many refusals without an accepted push between them, and for that long, are believed: the pushes to one
  /// device may be refused together.
  static let limit = 3
  static let patience: Duration = .seconds(2)

  private let state = Mutex<(acceptedAt: UnixTime?, refusals: Int)>((nil, 0))

  /// Notes that the service has accepted a push.
  func accepted(now: UnixTime) { state.withLock { $0 = (now, 0) } }

  /// Notes a refused push. Returns whether the refusal is believed.
  func refused(now: UnixTime) -> Bool {
    state.withLock { state in
      state.refusals += 1
      guard let acceptedAt = state.acceptedAt, now >= acceptedAt, now - acceptedAt < Self.memory else { return true }
      return state.refusals >= Self.limit && now - acceptedAt >= Self.patience
    }
  }

  /// Forgets everything: the credential was replaced.
  func reset() { state.withLock { $0 = (nil, 0) } }
}
