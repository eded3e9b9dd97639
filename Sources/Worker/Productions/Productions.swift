import FanfareCore
package import RDKafka

/// The purpose of a record on its way to Kafka, and the item that waits for its acknowledgement.
struct Production: Sendable {
  /// Decides how to proceed when Kafka refuses the record for good.
  enum Kind: Sendable {
    case status
    /// The status of a page: the rest of its broadcast waits for it.
    case page
    /// A segment of a broadcast.
    case segment
    /// A deferred record. If it is too large for its topic, its devices get their result instead.
    indirect case retry(RetryRecord)
    /// A dead letter. If it is too large with the record's value, it is written without.
    indirect case deadLetter(DeadLetter)
    /// A dead letter without the record's value.
    case shortenedDeadLetter
  }

  let kind: Kind
  /// The item that waits for it.
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

/// Records on their way to Kafka, and the purpose of each.
///
/// In two arrays, so that the sink gets the same records that are kept in case it refuses some: copies would count
/// references twice per send.
struct Productions: Sendable, RandomAccessCollection {
  /// The records alone, for the sink.
  private(set) var records: [ProducerRecord] = []
  private var purposes: [Production] = []

  var startIndex: Int { 0 }
  var endIndex: Int { records.count }
  subscript(index: Int) -> (production: Production, record: ProducerRecord) { (purposes[index], records[index]) }

  mutating func append(_ production: Production, _ record: ProducerRecord) {
    purposes.append(production)
    records.append(record)
  }

  /// The item that waits for a record.
  func ticket(at index: Int) -> Ticket { purposes[index].ticket }

  /// Takes out the records for which the rest of a broadcast waits.
  mutating func takeBroadcasts() -> Productions {
    var taken = Productions()
    // Nearly always there is none.
    guard purposes.contains(where: \.isOfBroadcast) else { return taken }
    var kept = Productions()
    for (production, record) in self {
      if production.isOfBroadcast { taken.append(production, record) } else { kept.append(production, record) }
    }
    self = kept
    return taken
  }
}

/// Kafka's answer to a batch of productions.
struct Acknowledgement: Sendable {
  let productions: Productions
  /// The refused ones by index, in order. All others are durable.
  let refused: [(index: Int, error: RDKafkaError)]
}

/// The records that Kafka refused, until they are produced again after a growing delay.
struct RefusedProductions: Sendable {
  private static let backoff = Backoff(first: .milliseconds(100), limit: .seconds(5))
  private var waiting = DeadlineQueue<(production: Production, record: ProducerRecord)>()
  /// The topic and error of the last refusal that waiting does not help; nil after a record was
  /// accepted.
  private(set) var problem: String?

  mutating func accepted() {
    if problem != nil { problem = nil }
  }

  /// Keeps a record to be produced again.
  mutating func keep(_ production: Production, _ record: ProducerRecord, at uptime: Int64) {
    var production = production
    let wait = Self.backoff.wait(production.refusals)
    production.refusals += 1
    waiting.insert((production, record), due: uptime + wait.milliseconds)
  }

  mutating func note(_ problem: String) { self.problem = problem }

  mutating func popDue(at uptime: Int64) -> (production: Production, record: ProducerRecord)? {
    waiting.popDue(at: uptime)
  }
}

extension ProducerRecord {
  // One for all records: each refers to it.
  private static let eventHeaders = [RecordHeader(name: "content-type", text: CloudEvent.contentType)]

  /// A record whose value is a CloudEvent in JSON, with the header that says so.
  package init(topic: String, partition: Int32? = nil, key: [UInt8]?, event: [UInt8]) {
    self.init(topic: topic, partition: partition, key: key, value: event, headers: Self.eventHeaders)
  }
}
