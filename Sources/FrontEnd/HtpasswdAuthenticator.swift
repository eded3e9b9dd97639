package import FanfareCore
import FoundationEssentials
package import Logging
import Synchronization

/// Users from a password file, with bcrypt, yescrypt or SHA-512 hashes (what `htpasswd -B` and `mkpasswd` write).
///
/// The file is read again when it changes, beside the event loops: whoever has it looked at waits, and the others are
/// checked against the users as they were. While its new content is not acceptable, or names nobody any more, the users
/// stay as they were and the log says why.
package final class HtpasswdAuthenticator: Authenticator {
  /// How the authenticator spends time and memory.
  package struct Configuration: Sendable {
    /// Passwords hashed at the same time; a yescrypt hash of usual cost takes 16 MiB meanwhile.
    package var concurrency = 2
    /// Passwords waiting to be hashed; beyond it requests are turned away.
    package var maximumWaiting = 256
    /// For how long credentials that were right are taken without hashing.
    package var cacheTimeToLive: Duration = .seconds(60)
    /// For how many credentials that is done.
    package var cacheCapacity = 10_000
    /// How often at most the file is looked at for changes.
    package var fileCheckInterval: Duration = .seconds(1)
    /// Where time comes from.
    package var now: @Sendable () -> ContinuousClock.Instant = { .now }

    package init() {}
  }

  private struct State {
    var file: HtpasswdFile
    var stamp: FileStamp
    /// Counts the versions of the file that were taken over.
    var generation = 0
    var nextCheck: ContinuousClock.Instant
  }

  private let path: String
  private let roles: RolePolicy
  private let configuration: Configuration
  private let logger: Logger
  private let pool: HashingPool
  /// Looks at the file, not behind the passwords that wait. One look may follow another at once, and a thread is free
  /// only a moment after its work has returned.
  private let reader = HashingPool(concurrency: 1, maximumWaiting: 1)
  private let verified: VerifiedCredentials
  private let state: Mutex<State>

  /// Reads the file. Throws when it cannot be read, or at the first line that is not acceptable, with its number.
  package init(
    path: String, roles: RolePolicy = RolePolicy(), configuration: Configuration = Configuration(), logger: Logger
  ) throws(FrontEndError) {
    self.path = path
    self.roles = roles
    self.configuration = configuration
    self.logger = logger
    pool = HashingPool(concurrency: configuration.concurrency, maximumWaiting: configuration.maximumWaiting)
    verified = VerifiedCredentials(
      capacity: configuration.cacheCapacity, timeToLive: configuration.cacheTimeToLive, now: configuration.now)
    // The stamp is taken first: a change while the file is read is then seen as one later.
    let stamp = FileStamp(path: path)
    let file = try HtpasswdFile(path: path)
    state = Mutex(State(file: file, stamp: stamp, nextCheck: configuration.now() + configuration.fileCheckInterval))
  }

  package func authenticate(_ credentials: BasicCredentials, hub: HubName) async throws -> Principal? {
    await reloadIfChanged()
    let (file, generation) = state.withLock { ($0.file, $0.generation) }
    let isRight = try await verified.verify(credentials, generation: generation) { () throws(AuthenticationError) in
      let (hash, isKnown) = file.hash(of: credentials.user)
      let password = credentials.password
      return try await pool.run { hash.matches(password) } && isKnown
    }
    return isRight ? Principal(user: credentials.user, roles: roles.roles(of: credentials.user)) : nil
  }

  private func reloadIfChanged() async {
    let now = configuration.now()
    let isDue = state.withLock { state in
      guard now >= state.nextCheck else { return false }
      state.nextCheck = now + configuration.fileCheckInterval
      return true
    }
    guard isDue else { return }
    // Refused only while looks take longer than the time between them: then the one that waits sees what is new.
    try? await reader.run { self.reload() }
  }

  private func reload() {
    let stamp = FileStamp(path: path)
    guard stamp != state.withLock({ $0.stamp }) else { return }
    do {
      let file = try HtpasswdFile(path: path)
      // More likely a file that is being written, or that did not fit onto its disk, than users who are all to be
      // locked out.
      guard !file.isEmpty else { throw FrontEndError(.htpasswd, "the password file \(path) names nobody any more") }
      let generation = state.withLock { state in
        state.file = file
        state.stamp = stamp
        state.generation += 1
        return state.generation
      }
      verified.invalidate(generation: generation)
      logger.notice("The password file was read again", metadata: [LogKeys.path: "\(path)"])
    } catch {
      // Remembered as seen, so that it is complained about once; the next change is looked at again.
      state.withLock { $0.stamp = stamp }
      logger.error(
        "The changed password file is not taken over", metadata: [LogKeys.path: "\(path)", LogKeys.cause: "\(error)"])
    }
  }
}
