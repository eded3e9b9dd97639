import CRDKafka
import Logging

/// The linked librdkafka.
package enum Librdkafka {
  /// Its version, such as `2.0.2`.
  package static var version: String {
    unsafe String(cString: rd_kafka_version_str())
  }

  /// Whether it is older than a version, given as `0xMMmmrr`.
  fileprivate static func isOlder(than version: Int32) -> Bool { rd_kafka_version() < version << 8 | 0xff }
}

/// The work-arounds for faults of librdkafka, each with the version that fixes it.
/// Distributions still have 2.0.2.
///
/// - 2.1: Pausing partitions drops fetched records and may lose some. ``ConsumerHandle`` redirects their queues
///   instead.
/// - 2.2: A broker's thread with a full prefetch queue sleeps for up to a second. ``FetchWakeUp`` wakes it.
/// - 2.3: Destroying a member without its first assignment aborts the process: ``destroyingJoiningMemberAborts``.
/// - 2.3: A temporary broker error can be fatal for an idempotent producer. ``Producer`` replaces its handle.
/// - 2.4: Destroying a handle can hang. ``Handle`` is destroyed on a thread of its own.
/// - 2.6.1: The leader of a group whose members subscribe to different topics can spin forever in the assignor, if
///   there are at least two members more than partitions to which one of them subscribes:
///   ``ConsumerConfiguration/groupID``.
/// - 2.6.1: SCRAM fails against Kafka 4.0. ``check(_:logger:)`` logs an error.
/// - 2.10: Nagle's algorithm delays requests by up to 40 ms: ``properties``.
/// - 2.10: A commit refused while a member joins loses all its partitions. ``JoinState`` tells when not to commit.
/// - 2.12: `produceva` crashes on a forced unknown partition with single headers. ``ProducerHandle`` passes a list.
enum Workarounds {
  /// Before 2.10 Nagle's algorithm is on by default and costs up to 40 ms when few requests are in
  /// flight.
  static let properties = [Property("socket.nagle.disable", "true")]

  /// Since 2.2 this is the wait of a partition with a full prefetch queue; before, ``FetchWakeUp``
  /// is needed.
  static let fetchBackoff = Property("fetch.queue.backoff.ms", "20")

  /// Before 2.2 a broker's thread sleeps for up to a second when the prefetch queue is full.
  static var fetchThreadsSleepWhenFull: Bool { Librdkafka.isOlder(than: 0x020200) }

  /// Before 2.3 librdkafka aborts the process when it destroys a member of a cooperative-sticky
  /// group that has joined and has no first assignment yet (librdkafka#4312), as when a worker stops while its group
  /// forms.
  static var destroyingJoiningMemberAborts: Bool { Librdkafka.isOlder(than: 0x020300) }

  /// Logs an error where the combination of library and configuration is known to fail.
  static func check(_ client: KafkaClientConfiguration, logger: Logger) {
    let mechanism =
      client.security?.mechanism ?? client.properties["sasl.mechanisms"] ?? client.properties["sasl.mechanism"] ?? ""
    // Before 2.6.1 the client concatenates the nonce twice; brokers from 4.0 on reject that.
    if mechanism.hasPrefix("SCRAM"), Librdkafka.isOlder(than: 0x020601) {
      logger.error(
        "This librdkafka cannot authenticate with SCRAM against Kafka 4.0 and later: use 2.6.1 or later",
        metadata: [LogKeys.library: "\(Librdkafka.version)", LogKeys.mechanism: "\(mechanism)"])
    }
  }
}

/// Decides when to wake librdkafka's broker threads, because the prefetch queue has room again.
///
/// Before 2.2 a broker's thread that finds the queue full sleeps for up to a second, even if records are taken
/// meanwhile, unless another request is to be sent. A small queue then runs empty, and a queue large enough to last
/// needs memory for a second's records. Any request wakes the thread.
struct FetchWakeUp {
  /// Often enough for any rate, and negligible beside the fetches.
  private static let interval: Duration = .milliseconds(20)

  private let isNeeded: Bool
  private let records: Int
  private let bytes: Int
  private var mayHaveBeenFull = false
  private var notBefore: ContinuousClock.Instant?

  /// - Parameters:
  ///   - isNeeded: Whether this librdkafka has the fault.
  ///   - records: The limit of the prefetch queue in records.
  ///   - bytes: Its limit in bytes.
  init(isNeeded: Bool, records: Int, bytes: Int) {
    self.isNeeded = isNeeded
    self.records = max(1, records)
    self.bytes = max(1, bytes)
  }

  /// Notes that records were taken from the queue, and how many are left.
  ///
  /// - Returns: Whether to send a request now.
  mutating func isDue(taken: Int, bytes takenBytes: Int, left: Int, at now: ContinuousClock.Instant) -> Bool {
    guard isNeeded, taken > 0 else { return false }
    // librdkafka does not report the bytes left: they are estimated from those taken, and half the limit counts as
    // full.
    let leftBytes = left * (takenBytes / taken)
    if left + taken >= records / 2 || leftBytes + takenBytes >= bytes / 2 { mayHaveBeenFull = true }
    guard mayHaveBeenFull, left <= records / 4, leftBytes <= bytes / 4, notBefore.map({ now >= $0 }) ?? true else {
      return false
    }
    mayHaveBeenFull = false
    notBefore = now + Self.interval
    return true
  }
}
