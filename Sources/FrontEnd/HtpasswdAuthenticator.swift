package import FanfareCore
import FoundationEssentials
package import Logging
import Synchronization

/// Authenticates the users of a password file.
/// Hashes are bcrypt, yescrypt or SHA-512 (`htpasswd -B`, `mkpasswd`).
///
/// The file is read again when it changes, on a thread of its own: the request that triggers it waits, others are
/// checked against the previous users. If the new content is invalid or has no users, the previous users stay and the
/// reason is logged.
package final class HtpasswdAuthenticator: Authenticator {
  /// Limits of time and memory.
  package struct Configuration: Sendable {
    /// Passwords hashed at the same time. A yescrypt hash of usual cost needs 16 MiB.
    package var concurrency = 2
    /// Passwords waiting to be hashed; further requests are refused.
    package var maximumWaiting = 256
    /// How long valid credentials are accepted without hashing again.
    package var cacheTimeToLive: Duration = .seconds(60)
    /// The most valid credentials that are remembered.
    package var cacheCapacity = 10_000
    /// The least time between two checks whether the file has changed.
    package var fileCheckInterval: Duration = .seconds(1)
    /// The clock; tests replace it.
    package var now: @Sendable () -> ContinuousClock.Instant = { .now }

    package init() {}
  }

  private struct State {
    var file: HtpasswdFile
    var stamp: FileStamp
    /// The number of successful reloads.
    var generation = 0
    var nextCheck: ContinuousClock.Instant
  }

  private let path: String
  private let policy: ScopePolicy
  private let configuration: Configuration
  private let logger: Logger
  private let pool: HashingPool
  /// Reads the file, so that a reload does not wait behind passwords.
  /// One waits: a reload may follow another at once, and the thread is free only a moment after the work has returned.
  private let reader = HashingPool(concurrency: 1, maximumWaiting: 1)
  private let verified: CredentialCache
  private let state: Mutex<State>

  /// Reads the file.
  /// Throws `.htpasswd` if it cannot be read, or with the number of the first invalid line.
  package init(
    path: String, policy: ScopePolicy = ScopePolicy(), configuration: Configuration = Configuration(), logger: Logger
  ) throws(FrontEndError) {
    self.path = path
    self.policy = policy
    self.configuration = configuration
    self.logger = logger
    pool = HashingPool(concurrency: configuration.concurrency, maximumWaiting: configuration.maximumWaiting)
    verified = CredentialCache(
      capacity: configuration.cacheCapacity, timeToLive: configuration.cacheTimeToLive, now: configuration.now)
    // Before reading: a change during reading is then detected as a later change.
    let stamp = FileStamp(path: path)
    let file = try HtpasswdFile(path: path)
    state = Mutex(State(file: file, stamp: stamp, nextCheck: configuration.now() + configuration.fileCheckInterval))
  }

  package var challenge: String { BasicCredentials.challenge }

  package func authenticate(
    _ credentials: Credentials, hub: HubName, from address: ClientAddress
  ) async throws -> Principal? {
    guard case .basic(let credentials) = credentials else { return nil }
    await reloadIfChanged()
    let (file, generation) = state.withLock { ($0.file, $0.generation) }
    let isRight = try await verified.verify(credentials, generation: generation) { () throws(AuthenticationError) in
      let (hash, isKnown) = file.hash(of: credentials.user)
      let password = credentials.password
      return try await pool.run { hash.matches(password) } && isKnown
    }
    return isRight ? Principal(user: credentials.user, scopes: policy.scopes(of: credentials.user)) : nil
  }

  private func reloadIfChanged() async {
    let now = configuration.now()
    let isDue = state.withLock { state in
      guard now >= state.nextCheck else { return false }
      state.nextCheck = now + configuration.fileCheckInterval
      return true
    }
    guard isDue else { return }
    // Refused only if another reload is running and one is waiting; the waiting one reads the latest content.
    try? await reader.run { self.reload() }
  }

  private func reload() {
    let stamp = FileStamp(path: path)
    guard stamp != state.withLock({ $0.stamp }) else { return }
    do {
      let file = try HtpasswdFile(path: path)
      // Probably the file is being written, or the disk is full. Locking out all users is hardly intended.
      guard !file.isEmpty else { throw FrontEndError(.htpasswd, "the password file \(path) has no users any more") }
      let generation = state.withLock { state in
        state.file = file
        state.stamp = stamp
        state.generation += 1
        return state.generation
      }
      verified.invalidate(generation: generation)
      logger.notice("Password file reloaded", metadata: [LogKeys.path: "\(path)"])
    } catch {
      // Marked as seen, so that the error is logged once. The next change triggers another reload.
      state.withLock { $0.stamp = stamp }
      logger.error(
        "Changed password file ignored: it is invalid", metadata: [LogKeys.path: "\(path)", LogKeys.cause: "\(error)"])
    }
  }
}
