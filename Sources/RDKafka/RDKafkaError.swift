/// An error of the Kafka client.
/// It never contains a record's key or value, or the value of a property.
package struct RDKafkaError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of error, which determines what the caller can do.
  package var code: Code
  /// A description for people, with the topic, property or broker error.
  package var message: String
  /// librdkafka's error number: positive from the broker, negative for a local error, 0 for our
  /// own.
  package var number: Int32
  /// Whether the client cannot continue.
  /// A producer replaces its handle by itself; a consumer leaves its group and ends.
  package var isFatal: Bool
  /// How long the caller has waited for the answer; nil if that was not the problem, or is unknown.
  package var waited: Duration?

  package init(code: Code, message: String, number: Int32 = 0, isFatal: Bool = false) {
    self.code = code
    self.message = message
    self.number = number
    self.isFatal = isFatal
  }

  /// Whether the same call can succeed later without a change.
  package var isRetriable: Bool { code.isRetriable }

  /// The message in plain words, for people who operate Fanfare.
  package var words: String { Self.plain(message) }

  /// A text of librdkafka without its names of errors, threads, states and kinds of connections.
  static func plain(_ text: String) -> String {
    text
      .replacing(/^(\[thrd:[^\]]*\]: )+/, with: "")
      .replacing(/\ \(_?[A-Z][A-Z_]+\)$/, with: "")
      .replacing(/\ \(after\ [0-9]+ms\ in\ state\ .*\)$/, with: "")
      .replacing(/\b(plaintext|ssl|sasl_plaintext|sasl_ssl):\/\//, with: "")
      .replacing(/(:[0-9]+)\/(bootstrap|[0-9]+)\b/) { $0.output.1 }
      .replacing(/\bipv[46]#/, with: "")
      .replacing("Broker: ", with: "").replacing("Local: ", with: "")
  }

  /// The topic or request that librdkafka's error is about; nil if the message does not name one.
  package var subject: String? {
    [": Local: ", ": Broker: "].lazy.compactMap { message.firstRange(of: $0)?.lowerBound }.first
      .map { String(message[..<$0]) }
  }

  /// The code and the message in plain words.
  package var description: String { "\(code): \(words)" }
}

extension RDKafkaError: CustomDebugStringConvertible {
  /// The code, librdkafka's own message and its number.
  package var debugDescription: String {
    number == 0 ? "\(code): \(message)" : "\(code): \(message) (librdkafka \(number))"
  }
}

extension RDKafkaError {
  /// The kinds of errors. A struct, so that a new kind does not break a caller's switch.
  package struct Code: Sendable, Hashable, CustomStringConvertible {
    private enum Value: String {
      case configuration, closed, queueFull, messageTooLarge, invalidRecord, unknownTopic, unauthorized, timedOut,
        unreachable
      case notPersisted, possiblyPersisted, fatal, notAssigned, rebalancing, conflict, unsupported, broker
    }

    private let value: Value

    /// A setting is unknown, invalid, or contradicts another one. Change the configuration.
    package static let configuration = Code(value: .configuration)
    /// The client was closed before or during the call, which had no effect.
    package static let closed = Code(value: .closed)
    /// The producer's limit of records or bytes is reached; nothing was enqueued.
    /// Retry more slowly.
    package static let queueFull = Code(value: .queueFull)
    /// The record, or the metadata of an offset, exceeds a limit of client or broker. Do not retry.
    package static let messageTooLarge = Code(value: .messageTooLarge)
    /// The broker will never take this record: its format, timestamp or a policy forbids it. Do not retry.
    package static let invalidRecord = Code(value: .invalidRecord)
    /// The topic or partition does not exist. Create it.
    package static let unknownTopic = Code(value: .unknownTopic)
    /// The broker rejected the credentials, or they do not permit the call.
    package static let unauthorized = Code(value: .unauthorized)
    /// A request other than producing had no answer in time. It may have taken effect.
    package static let timedOut = Code(value: .timedOut)
    /// No broker can be reached, or the connection broke.
    package static let unreachable = Code(value: .unreachable)
    /// The record is not in the log. Sending it again cannot duplicate it.
    package static let notPersisted = Code(value: .notPersisted)
    /// The record was sent and not acknowledged: it may be in the log.
    /// Sending it again may duplicate it.
    package static let possiblyPersisted = Code(value: .possiblyPersisted)
    /// The handle has failed permanently (an idempotence violation, a fenced member).
    package static let fatal = Code(value: .fatal)
    /// The partition is not assigned to this consumer any more. Its new owner does the work.
    package static let notAssigned = Code(value: .notAssigned)
    /// The group is rebalancing, or the member's generation is over.
    /// The offsets were not committed.
    package static let rebalancing = Code(value: .rebalancing)
    /// An existing object differs from the specification, such as a topic with fewer partitions.
    package static let conflict = Code(value: .conflict)
    /// The cluster cannot do this.
    package static let unsupported = Code(value: .unsupported)
    /// Any other error of the broker or of librdkafka; the message names it.
    package static let broker = Code(value: .broker)

    /// Whether the record itself is refused: no later attempt can succeed, whatever an operator repairs in the cluster.
    package var condemnsRecord: Bool { self == .messageTooLarge || self == .invalidRecord }

    /// Whether the same call can succeed later without a change.
    package var isRetriable: Bool {
      switch value {
      case .queueFull, .timedOut, .unreachable, .notPersisted, .possiblyPersisted, .rebalancing: true
      case .configuration, .closed, .messageTooLarge, .invalidRecord, .unknownTopic, .unauthorized, .fatal,
        .notAssigned, .conflict,
        .unsupported, .broker:
        false
      }
    }

    package var description: String { value.rawValue }
  }
}
