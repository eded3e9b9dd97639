import RDKafka

/// Records on their way to Kafka, and what each is for.
///
/// In two arrays, so that the sink gets the very records that are kept for the case that it refuses some: a copy of
/// each would count its references, twice per send.
struct Productions: Sendable, RandomAccessCollection {
  /// The records alone, for the sink.
  private(set) var records: [ProducerRecord] = []
  private var purposes: [Production] = []

  var startIndex: Int { 0 }
  var endIndex: Int { records.count }
  /// A record, and what it is for.
  subscript(index: Int) -> (production: Production, record: ProducerRecord) { (purposes[index], records[index]) }

  /// Adds a record.
  mutating func append(_ production: Production, _ record: ProducerRecord) {
    purposes.append(production)
    records.append(record)
  }

  /// The item that waits for a record.
  func ticket(at index: Int) -> Ticket { purposes[index].ticket }

  /// Takes those out for which the rest of a broadcast waits.
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
