import FanfareCore
import RDKafka

/// What a record on its way to Kafka is for: the work item that is not settled before it is acknowledged.
struct Production: Sendable {
  /// What it is about, which decides what may be done when Kafka refuses it for good.
  enum Kind: Sendable {
    case status
    /// The status of a page: the rest of its broadcast waits for it.
    case page
    /// A segment of a broadcast.
    case segment
    /// What was put off; when it is too large for its topic, it ends instead.
    indirect case retry(RetryRecord)
    /// A dead letter may be written without the value it sets aside, when it is too large with it.
    indirect case deadLetter(DeadLetter)
    /// A dead letter that has already lost its value.
    case shortenedDeadLetter
  }

  let kind: Kind
  /// The item that waits for it; the device part means nothing.
  let ticket: Ticket
  /// How often Kafka has refused it.
  var refusals = 0

  /// Whether the rest of a broadcast waits for it.
  var isOfBroadcast: Bool {
    switch kind {
    case .page, .segment: true
    case .status, .retry, .deadLetter, .shortenedDeadLetter: false
    }
  }
}
