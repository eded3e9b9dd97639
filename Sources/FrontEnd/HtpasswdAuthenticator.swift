package import FanfareCore
import FoundationEssentials
import HTTPServer
package import Logging

/// Authenticates the users of a password file.
/// Hashes are bcrypt, yescrypt or SHA-512 (`htpasswd -B`, `mkpasswd`).
///
/// The file is read again when it changes; see `WatchedFile`. A changed file without users is ignored like an invalid
/// one.
package final class HtpasswdAuthenticator: Authenticator {
  /// Limits of time and memory.
  package struct Configuration: Sendable {
    /// How long valid credentials are accepted without hashing again, counted from their last use.
    package var cacheTimeToLive: Duration = .seconds(300)
    /// How long they are accepted without hashing again however often they are used.
    package var cacheLimit: Duration = .seconds(3600)
    /// The most valid credentials that are remembered.
    package var cacheCapacity = 10_000
    /// The least time between two checks whether the file has changed.
    package var fileCheckInterval: Duration = .seconds(1)
    /// The clock; tests replace it.
    package var now: @Sendable () -> ContinuousClock.Instant = { .now }

    package init() {}
  }

  private let policy: ScopePolicy
  private let groups: GroupDirectory?
  private let hashing: HashingThreads
  private let file: WatchedFile<HtpasswdFile>
  private let verified: CredentialCache
  private let now: @Sendable () -> ContinuousClock.Instant

  /// Reads the file.
  /// Throws `.htpasswd` if it cannot be read, or with the number of the first invalid line.
  package init(
    path: String, policy: ScopePolicy = ScopePolicy(), groups: GroupDirectory? = nil,
    hashing: HashingThreads = HashingThreads(), configuration: Configuration = Configuration(), logger: Logger
  ) throws(FrontEndError) {
    self.policy = policy
    self.groups = groups
    self.hashing = hashing
    now = configuration.now
    verified = CredentialCache(
      capacity: configuration.cacheCapacity, timeToLive: configuration.cacheTimeToLive,
      limit: configuration.cacheLimit, now: configuration.now)
    file = try WatchedFile(
      path: path, name: "Password file", interval: configuration.fileCheckInterval, now: configuration.now,
      logger: logger
    ) { path, isFirst throws(FrontEndError) in
      let file = try HtpasswdFile(path: path)
      // Probably the file is being written, or the disk is full. Locking out all users is hardly intended.
      if !isFirst, file.isEmpty {
        throw FrontEndError(.htpasswd, "the password file \(path) has no users any more")
      }
      return file
    }
  }

  package var challenge: String { BasicCredentials.challenge }

  package func authenticate(
    _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
  ) async throws -> Principal? {
    guard case .basic(let basic) = credentials else { return nil }
    let (users, generation) = await file.latest()
    let end = try await verified.verify(basic, generation: generation) { () throws(AuthenticationError) in
      let (hash, isKnown) = users.hash(of: basic.user)
      let password = basic.password
      let login = origin.isKnown ? HashingThreads.Login.known(Self.digest(basic.user, hub, origin)) : .stranger
      return try await hashing.run(for: login) { hash.matches(password) } && isKnown
    }
    guard let end else { return nil }
    return await policy.principal(basic.user, in: groups) { [now, file] in
      now() < end && file.isCurrent(generation)
    }
  }

  private static func digest(_ user: String, _ hub: HubName, _ origin: LoginOrigin) -> Int {
    KeyedDigest.make {
      $0.combine(hub)
      $0.combine(exactly: user)
      $0.combine(origin.address.network)
    }
  }
}
