/// What went wrong in the Kafka client. Never contains a record's key or value, nor the value of a configuration
/// property.
package struct RDKafkaError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of error this is: decides what the caller can do about it.
  package var code: Code
  /// What happened, for people: names the topic, property or broker error concerned.
  package var message: String
  /// librdkafka's number of the error: positive as the broker sent it, negative for a local one, 0 when the error is
  /// our own.
  package var number: Int32
  /// Whether the client that reported it cannot go on. A producer replaces its handle by itself; a consumer leaves and
  /// ends.
  package var isFatal: Bool

  /// Makes an error.
  package init(code: Code, message: String, number: Int32 = 0, isFatal: Bool = false) {
    self.code = code
    self.message = message
    self.number = number
    self.isFatal = isFatal
  }

  /// Whether the same call can succeed later without anybody changing anything.
  package var isRetriable: Bool {
    code.isRetriable
  }

  /// The code and the message.
  package var description: String {
    number == 0 ? "\(code): \(message)" : "\(code): \(message) (librdkafka \(number))"
  }
}

extension RDKafkaError {
  /// The kinds of errors. A struct, so that a kind can be added without breaking a caller's switch.
  package struct Code: Sendable, Hashable, CustomStringConvertible {
    private enum Value: String {
      case configuration, closed, queueFull, messageTooLarge, unknownTopic, unauthorized, timedOut, unreachable
      case notPersisted, possiblyPersisted, fatal, notAssigned, rebalancing, conflict, unsupported, broker
    }

    private let value: Value

    /// A setting is unknown, has a value that is not accepted, or contradicts another one. Change the configuration.
    package static let configuration = Code(value: .configuration)
    /// The client was closed before or while the call was made. Nothing of the call has happened.
    package static let closed = Code(value: .closed)
    /// The producer holds as many records or bytes as it may; nothing was enqueued. Slow down and try again.
    package static let queueFull = Code(value: .queueFull)
    /// The record, or the metadata of an offset, is larger than the client or the broker allows. It never will be
    /// accepted.
    package static let messageTooLarge = Code(value: .messageTooLarge)
    /// The topic, or the partition in it, does not exist. Create it.
    package static let unknownTopic = Code(value: .unknownTopic)
    /// The broker refused the credentials, or they do not allow this.
    package static let unauthorized = Code(value: .unauthorized)
    /// A request other than producing had no answer in time; whether it took effect is unknown.
    package static let timedOut = Code(value: .timedOut)
    /// No broker can be reached, or the connection broke.
    package static let unreachable = Code(value: .unreachable)
    /// The record is certainly not in the log. Sending it again cannot duplicate it.
    package static let notPersisted = Code(value: .notPersisted)
    /// The record was sent and not acknowledged: it may be in the log. Sending it again may duplicate it.
    package static let possiblyPersisted = Code(value: .possiblyPersisted)
    /// The handle is dead for good (an idempotence violation, a fenced member).
    package static let fatal = Code(value: .fatal)
    /// The partition is not assigned to this consumer (any more): whoever owns it now does the work.
    package static let notAssigned = Code(value: .notAssigned)
    /// The group is rebalancing, or this member's generation is over: the offsets were not committed.
    package static let rebalancing = Code(value: .rebalancing)
    /// What is there differs from what was asked for, as a topic with fewer partitions.
    package static let conflict = Code(value: .conflict)
    /// The cluster cannot do this.
    package static let unsupported = Code(value: .unsupported)
    /// Any other error of the broker or of librdkafka; the message names it.
    package static let broker = Code(value: .broker)

    /// Whether the same call can succeed later without anybody changing anything.
    package var isRetriable: Bool {
      switch value {
      case .queueFull, .timedOut, .unreachable, .notPersisted, .possiblyPersisted, .rebalancing: true
      case .configuration, .closed, .messageTooLarge, .unknownTopic, .unauthorized, .fatal, .notAssigned, .conflict,
        .unsupported, .broker:
        false
      }
    }

    /// The name of the kind.
    package var description: String {
      value.rawValue
    }
  }
}
