import Synchronization

/// Lets something be said once per access token, for the log: what may befall every push must not fill it, and what
/// lasts for long must not be said only on the first day.
final class OncePerToken: Sendable {
  private let last = Mutex<Int?>(nil)

  /// Whether it has not been said under the token of this generation yet; it has been from now on.
  func isNews(generation: Int) -> Bool {
    last.withLock { last in
      defer { last = generation }
      return last != generation
    }
  }
}
