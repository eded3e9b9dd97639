package import FanfareCore
import FoundationEssentials
package import Logging
import ServiceLifecycle
import Synchronization

/// The keys of an issuer of tokens, from a file or from a URL.
///
/// Create it, then run it as a service: `run` fetches the keys and refreshes them. While they cannot be fetched, the
/// old ones serve up to `maximumAge`.
package final class TokenKeys: Service {
  /// Where a JSON Web Key Set is.
  package enum Location: Sendable {
    /// A file, which is read again when it changes.
    case file(String)
    /// A URL of https, or of http on a loopback address. `trustRoots` (PEM) replaces the system's trust roots.
    case url(String, trustRoots: [UInt8]?)
  }

  /// The location, and how often the keys are fetched.
  package struct Configuration: Sendable {
    package var location: Location
    /// The algorithms that the keys are used with.
    package var algorithms: Set<TokenAlgorithm> = TokenAlgorithm.usual
    /// The time between two fetches from a URL.
    package var refreshInterval: Duration = .seconds(900)
    /// The age at which keys that could not be fetched again are no longer used.
    package var maximumAge: Duration = .seconds(86_400)
    /// The time limit of one fetch from a URL.
    package var fetchTimeout: Duration = .seconds(10)

    package init(location: Location) { self.location = location }

    /// A change of a file is noticed after a second.
    var schedule: KeySetState.Schedule {
      switch location {
      case .file:
        .init(refreshInterval: .seconds(1), unknownKeyInterval: .seconds(1), maximumAge: maximumAge)
      case .url:
        .init(refreshInterval: refreshInterval, unknownKeyInterval: .seconds(60), maximumAge: maximumAge)
      }
    }
  }

  private struct Guarded {
    var keys: KeySetState
    /// Requests that wait for the fetch in progress.
    var waiters: [CheckedContinuation<Bool, Never>] = []
    var isClosed = false
  }

  /// The most requests that wait for a fetch; further ones are refused.
  private static let maximumWaiting = 1000
  /// The pause between two checks whether a fetch is due.
  private static let tick: Duration = .seconds(1)

  private let configuration: Configuration
  private let clock: any WallClock
  private let logger: Logger
  private let guarded: Mutex<Guarded>
  private let wakeups: AsyncStream<Void>
  private let waker: AsyncStream<Void>.Continuation

  /// The logger should carry the hub's name.
  package init(_ configuration: Configuration, clock: any WallClock = SystemWallClock(), logger: Logger) {
    self.configuration = configuration
    self.clock = clock
    self.logger = logger
    guarded = Mutex(Guarded(keys: KeySetState(configuration.schedule)))
    (wakeups, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    // Requests before the first fetch wait for it.
    wakeIfDue()
  }

  /// Throws `.configuration` if a file of keys is unusable now, so that the mistake is found at start.
  package func check() async throws(FrontEndError) {
    guard case .file(let path) = configuration.location else { return }
    do throws(KeyFetchError) {
      let json = try KeyFile(path: path).read()
      do throws(VerificationKeys.Unusable) {
        _ = try await VerificationKeys(json, algorithms: configuration.algorithms)
      } catch {
        throw KeyFetchError(description: "the file \(path) \(error)")
      }
    } catch {
      throw FrontEndError(.configuration, error.description)
    }
  }

  /// Fetches the keys when it is due, until the task is cancelled. Call it once.
  package func run() async throws {
    defer { close() }
    switch configuration.location {
    case .file(let path):
      let file = KeyFile(path: path)
      await run { () throws(KeyFetchError) in try file.read() }
    case .url(let url, let trustRoots):
      let download = KeyDownload(url: url, trustRoots: trustRoots, timeout: configuration.fetchTimeout)
      try await download.withClient { fetch in await run(fetch: fetch) }
    }
  }

  /// Returns the readiness problem: there are no keys, or they are too old.
  package func problem() -> String? {
    let now = clock.now()
    return guarded.withLock { guarded in
      guard !guarded.keys.isUsable(at: now) else { return nil }
      return "no keys for bearer tokens: " + (guarded.keys.failure ?? "they have not been fetched yet")
    }
  }

  /// The number of changes of the keys; nil if there are none that may be used.
  func generation(at now: UnixTime) -> Int? {
    guarded.withLock { $0.keys.isUsable(at: now) ? $0.keys.generation : nil }
  }

  /// Returns the key with this id for an algorithm, or nil if the issuer has none. An unknown key waits for a fetch,
  /// and so does one of a later generation than `rejected`.
  ///
  /// Throws `.unavailable` if the keys cannot be fetched, `.notFetched` if not yet again for this key, `.overloaded` if
  /// too many requests wait.
  func key(
    _ id: String?, _ algorithm: TokenAlgorithm, rejected: Int? = nil
  ) async throws(AuthenticationError) -> (key: VerificationKey, generation: Int)? {
    // The second fetch is for a key that appeared during the first one.
    for _ in 0..<3 {
      let now = clock.now()
      let (finding, startsFetch) = guarded.withLock { $0.keys.find(id, algorithm, rejected: rejected, at: now) }
      if startsFetch { waker.yield() }
      switch finding {
      case .found(let key, let generation): return (key, generation)
      case .unknown: return nil
      case .unavailable: throw .unavailable
      case .notFetched: throw .notFetched
      case .wait: guard await waitForFetch() else { throw .overloaded }
      }
    }
    throw .unavailable
  }

  /// Starts a fetch if one is due. Tests call it instead of waiting.
  func wakeIfDue() {
    let now = clock.now()
    if guarded.withLock({ $0.keys.beginFetchIfDue(at: now) }) { waker.yield() }
  }

  /// Returns after the fetch in progress; false if too many requests wait for it.
  func waitForFetch() async -> Bool {
    enum Step { case wait, goOn, refuse }
    return await withCheckedContinuation { continuation in
      let step = guarded.withLock { guarded -> Step in
        guard guarded.keys.isFetching, !guarded.isClosed else { return guarded.isClosed ? .refuse : .goOn }
        guard guarded.waiters.count < Self.maximumWaiting else { return .refuse }
        guarded.waiters.append(continuation)
        return .wait
      }
      if step != .wait { continuation.resume(returning: step == .goOn) }
    }
  }

  private func run(fetch: @Sendable () async throws(KeyFetchError) -> [UInt8]) async {
    await withTaskGroup { group in
      group.addTask { [self] in
        // Ends when the group is cancelled.
        while (try? await Task.sleep(for: Self.tick)) != nil { wakeIfDue() }
      }
      var accepted: [UInt8] = []
      for await _ in wakeups { await settle(await result(of: fetch, accepted: &accepted)) }
      group.cancelAll()
    }
  }

  /// Fetches and parses the keys, unless the content is the one accepted last.
  private func result(
    of fetch: () async throws(KeyFetchError) -> [UInt8], accepted: inout [UInt8]
  ) async -> KeySetState.Fetched {
    do throws(KeyFetchError) {
      let json = try await fetch()
      guard json != accepted else { return .unchanged }
      do throws(VerificationKeys.Unusable) {
        let keys = try await VerificationKeys(json, algorithms: configuration.algorithms)
        accepted = json
        return .changed(keys)
      } catch {
        return .failed("the key set \(error)")
      }
    } catch {
      return .failed(error.description)
    }
  }

  private func settle(_ result: KeySetState.Fetched) async {
    let now = clock.now()
    let (before, waiters) = guarded.withLock { guarded in
      let before = guarded.keys.failure
      guarded.keys.fetched(result, at: now)
      defer { guarded.waiters = [] }
      return (before, guarded.waiters)
    }
    for waiter in waiters { waiter.resume(returning: true) }
    switch result {
    case .changed: logger.notice("Token keys changed")
    case .unchanged: if before != nil { logger.notice("Token keys can be fetched again") }
    // Once for each reason: a file is read every second.
    case .failed(let reason):
      if before != reason {
        logger.warning("Token keys could not be fetched; the old ones stay", metadata: [LogKeys.cause: "\(reason)"])
      }
    }
  }

  private func close() {
    let waiters = guarded.withLock { guarded in
      guarded.isClosed = true
      defer { guarded.waiters = [] }
      return guarded.waiters
    }
    for waiter in waiters { waiter.resume(returning: false) }
  }
}
