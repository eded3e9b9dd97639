import Logging
import Synchronization

/// Asks on a connection of its own whether a client's cluster can be reached.
///
/// The client's own connections do not tell. A broker answers the requests of a connection one after another, so behind
/// a record that waits for the acknowledgement of a dead follower all others wait too. And librdkafka reports that all
/// brokers are down as soon as it has lost each of its connections once, idle ones included.
final class Reachability: Sendable {
  private enum Answer {
    /// No connection has failed since a broker answered.
    case unknown
    /// A connection has failed, and the brokers are being asked.
    case doubtful
    /// No broker has answered.
    case none
  }

  private let client: KafkaClientConfiguration
  private let logger: Logger
  private let handle = Mutex<Handle?>(nil)
  private let answer = Mutex(Answer.unknown)

  init(of client: KafkaClientConfiguration, logger: Logger) {
    (self.client, self.logger) = (client, logger)
  }

  /// Whether no broker has answered since a connection failed.
  var isUnreachable: Bool { answer.withLock { $0 == .none } }

  /// Begins to ask the brokers, on a thread of its own, until one answers or `isNeeded` says no.
  /// Has no effect while it does.
  func check(while isNeeded: @escaping @Sendable () -> Bool) {
    let isFirst = answer.withLock { answer in
      guard answer == .unknown else { return false }
      answer = .doubtful
      return true
    }
    guard isFirst else { return }
    BlockingCalls.detach { [self] in
      ask(while: isNeeded)
      answer.withLock { $0 = .unknown }
    }
  }

  private func ask(while isNeeded: () -> Bool) {
    // The first answer may have to wait for the handshakes of a new connection.
    var timeout: Int32 = 2_000
    while isNeeded() {
      do {
        guard try !openHandle().hasReachableBroker(timeoutMilliseconds: timeout) else { break }
      } catch {
        return logger.error("Kafka cannot be asked", metadata: [LogKeys.error: "\(error)"])
      }
      let wasKnown = answer.withLock { answer in
        defer { answer = .none }
        return answer == .none
      }
      if !wasKnown { logger.error("No Kafka broker is reachable") }
      timeout = 1_000
      Pause.briefly()
    }
    guard isNeeded() else { return }
    if isUnreachable {
      logger.notice("Kafka is reachable again")
    } else {
      logger.debug("A connection failed, and Kafka is reachable")
    }
  }

  /// The number of partitions of a topic. Blocks the thread for at most `timeoutMilliseconds`.
  ///
  /// - Throws: `unknownTopic`, `unreachable`, `timedOut`, `unauthorized`.
  func partitionCount(of topic: String, timeoutMilliseconds: Int32) throws(RDKafkaError) -> Int32 {
    try TopicHandle(name: topic, on: try openHandle()).partitionCount(timeoutMilliseconds: timeoutMilliseconds)
  }

  /// The handle, which is created when it is first used.
  private func openHandle() throws(RDKafkaError) -> Handle {
    let properties = PropertySet(
      required: client.commonProperties, ifSupported: [Property("enable.metrics.push", "false")],
      further: client.silentProperties,
      reserved: ["bootstrap.servers", "metadata.broker.list", "client.id", "log.queue"], security: client.security)
    return try handle.withLock { handle throws(RDKafkaError) in
      if let handle { return handle }
      let new = try Handle(kind: .producer, properties: properties, events: 0, logsToQueue: false)
      handle = new
      return new
    }
  }
}
