import CoreMetrics
import Crypto
import FoundationEssentials
package import Logging
import Synchronization

/// The log of security events: a log of its own with the label `fanfare.security`.
///
/// Each line has the event's constant name, the request's id, the caller's address and a keyed hash of the user's name,
/// and no secrets. One key gives a user the same hash in all processes and at all times.
///
/// A flood cannot fill the disk: of each event at most `burst` lines are written at once and `linesPerSecond` in the
/// long run. `reportSuppressed` writes the number of the others. `fanfare_security_events_total` counts all events.
package final class SecurityLog: Sendable {
  /// The label of the logger.
  package static let label = "fanfare.security"

  /// A kind of event. The raw values are stable: alarms are built on them.
  package enum Event: String, CaseIterable, Sendable {
    /// A request without credentials was refused (401).
    case unauthenticated = "request.unauthenticated"
    /// Wrong credentials (401).
    case loginFailed = "login.failed"
    /// Credentials were not checked, because of too many failures (429).
    case loginRefused = "login.refused"
    /// A caller lacks a scope or a right (403).
    case forbidden = "request.forbidden"
    /// A caller exceeded a quota (429).
    case overQuota = "request.overQuota"
    /// A send was paused, resumed or cancelled.
    case sendSteered = "send.steered"
    /// A user removed one of its devices.
    case deviceRemoved = "device.removed"
    /// A user with the scope `operate` removed another user's device.
    case othersDeviceRemoved = "device.removedOfOther"
    /// Dead letters were put back.
    case deadLettersRedriven = "deadLetters.redriven"
    /// A version of a hub's template was stored.
    case templateStored = "template.stored"
    /// A hub's template was removed.
    case templateRemoved = "template.removed"
    /// A client of Azure Notification Hubs replaced a hub's credentials at the push services.
    case credentialsReplaced = "credentials.replaced"
    /// A client of Azure Notification Hubs started a job that exports, imports or removes registrations.
    case jobStarted = "job.started"
    /// Sends were repeated from the log.
    case sendsReplayed = "sends.replayed"
    /// A person logged in with a browser.
    case sessionOpened = "session.opened"
    /// An API key was made.
    case keyCreated = "key.created"
    /// An API key was revoked.
    case keyRevoked = "key.revoked"
  }

  /// The most lines of one event at once.
  private static let burst = 100.0
  /// The lines of one event per second in the long run.
  private static let linesPerSecond = 10.0

  /// A token bucket.
  private struct Bucket {
    var tokens = SecurityLog.burst
    var filledAt: ContinuousClock.Instant
    var suppressed = 0
  }

  private let key: SymmetricKey
  private let logger: Logger
  private let now: @Sendable () -> ContinuousClock.Instant
  private let counters: [Event: Counter]
  private let buckets: Mutex<[Event: Bucket]>

  /// - Parameters:
  ///   - key: The key of the hashes, at least 16 bytes; nil: a random one.
  ///   - logger: The logger; by default one with the label `label`.
  ///   - now: The clock of the limits.
  package init(
    key: [UInt8]? = nil, logger: Logger = Logger(label: SecurityLog.label),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.key = key.map { SymmetricKey(data: $0) } ?? SymmetricKey(size: .bits256)
    self.logger = logger
    self.now = now
    counters = Dictionary(
      uniqueKeysWithValues: Event.allCases.map {
        ($0, Counter(label: "fanfare_security_events_total", dimensions: [("event", $0.rawValue)]))
      })
    let start = now()
    buckets = Mutex(
      Dictionary(uniqueKeysWithValues: Event.allCases.map { ($0, Bucket(filledAt: start)) }))
  }

  /// Records an event.
  ///
  /// `user` is hashed. `details` are logged as they are: ids, counts, states and codes, never a name, tag, handle or
  /// text of a caller.
  package func record(
    _ event: Event, requestID: String? = nil, address: @autoclosure () -> String? = nil, user: String? = nil,
    hub: String? = nil, details: @autoclosure () -> [String: String] = [:]
  ) {
    counters[event]?.increment()
    guard mayWrite(event) else { return }
    var metadata: Logger.Metadata = ["event": "\(event.rawValue)"]
    if let requestID { metadata["request.id"] = "\(requestID)" }
    if let address = address() { metadata["client.address"] = "\(address)" }
    if let user { metadata["user.hash"] = "\(hash(of: user))" }
    if let hub { metadata["hub"] = "\(hub)" }
    for (name, value) in details() { metadata[name] = "\(value)" }
    logger.notice("Security event", metadata: metadata)
  }

  /// Writes how many events were suppressed since the last call, one line for each kind.
  package func reportSuppressed() {
    let counts = buckets.withLock { buckets in
      buckets.compactMapValues { $0.suppressed == 0 ? nil : $0.suppressed }.sorted { $0.key.rawValue < $1.key.rawValue }
    }
    for (event, count) in counts {
      buckets.withLock { $0[event]?.suppressed -= count }
      logger.notice(
        "Security events suppressed: too many of one kind",
        metadata: ["event": "\(event.rawValue)", "count": "\(count)"])
    }
  }

  /// The keyed hash of a user's name: 16 hexadecimal digits of HMAC-SHA256.
  package func hash(of user: String) -> String {
    let code = HMAC<SHA256>.authenticationCode(for: Array(user.utf8), using: key)
    return code.prefix(8).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }

  private func mayWrite(_ event: Event) -> Bool {
    let moment = now()
    return buckets.withLock { buckets in
      guard var bucket = buckets[event] else { return true }
      let elapsed = max(.zero, moment - bucket.filledAt) / .seconds(1)
      bucket.tokens = min(Self.burst, bucket.tokens + elapsed * Self.linesPerSecond)
      bucket.filledAt = moment
      let isAllowed = bucket.tokens >= 1
      if isAllowed { bucket.tokens -= 1 } else { bucket.suppressed += 1 }
      buckets[event] = bucket
      return isAllowed
    }
  }
}
