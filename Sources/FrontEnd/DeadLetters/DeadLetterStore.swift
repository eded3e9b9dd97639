package import FanfareCore

/// The dead letters of all hubs.
/// Called by the front end's routes and implemented over the dead-letter topic.
///
/// Every method may be called from any task at any time. All throw `DeadLetterError`.
package protocol DeadLetterStore: Sendable {
  /// One page of letters, the newest first. Examines a bounded number of records.
  func list(_ query: DeadLetterQuery) async throws(DeadLetterError) -> DeadLetterPage

  /// The letter at the place; nil if there is none.
  func letter(at place: LogPlace) async throws(DeadLetterError) -> DeadLetter?

  /// Produces the records of the selected letters to their original topics again.
  /// Returns when Kafka has acknowledged all of them.
  func redrive(_ order: RedriveOrder) async throws(DeadLetterError) -> RedriveOutcome
}

/// Why the dead letters could not be read or redriven.
package enum DeadLetterError: Error, Hashable {
  /// Kafka cannot be reached, or the topic does not exist.
  case unavailable
  /// Other requests are reading the topic.
  case busy
  /// There are more records to read than one request may.
  case tooMuch
  /// Kafka did not acknowledge all records; at most this many were redriven. An order after `next` continues.
  case interrupted(redriven: Int, next: DeadLetterPosition?)
}

/// A query for dead letters.
package struct DeadLetterQuery: Sendable {
  /// The highest limit.
  package static let maximumLimit = 200

  /// Whether the caller may see a letter.
  package var isVisible: @Sendable (DeadLetter) -> Bool
  /// Only letters with this reason; nil: all.
  package var reason: DeadLetter.Reason?
  /// The most letters in the page, 1 to `maximumLimit`.
  package var limit: Int
  /// Only letters below these offsets; nil: from the newest on.
  package var before: DeadLetterPosition?

  package init(
    isVisible: @escaping @Sendable (DeadLetter) -> Bool, reason: DeadLetter.Reason? = nil, limit: Int = 50,
    before: DeadLetterPosition? = nil
  ) {
    self.isVisible = isVisible
    self.reason = reason
    self.limit = limit
    self.before = before
  }
}

/// Where a page of letters or a redrive ends: for each partition, the offset below which the next page continues, or at
/// which the next order begins.
package struct DeadLetterPosition: Hashable, Sendable {
  package let offsets: [Int32: Int64]

  package init(_ offsets: [Int32: Int64]) { self.offsets = offsets }
}

/// One page of the answer to a `DeadLetterQuery`.
package struct DeadLetterPage: Sendable {
  /// The letters, the newest first.
  package let letters: [LetterSummary]
  /// The visible letters among the examined records, by reason.
  package let counts: [DeadLetter.Reason: Int]
  /// Whether `counts` covers every letter from the query's position on.
  package let countsAll: Bool
  /// Where the next page continues; nil on the last page. A page may have fewer letters than the limit before it.
  package let next: DeadLetterPosition?

  package init(
    letters: [LetterSummary], counts: [DeadLetter.Reason: Int], countsAll: Bool, next: DeadLetterPosition?
  ) {
    self.letters = letters
    self.counts = counts
    self.countsAll = countsAll
    self.next = next
  }
}

/// A dead letter without its record's key and value.
package struct LetterSummary: Sendable {
  package let place: LogPlace
  package let reason: DeadLetter.Reason
  package let detail: String
  package let origin: DeadLetter.Origin
  package let at: UnixTime
  /// The size of the record's value in bytes.
  package let valueSize: Int
  /// Whether the value was kept completely, so that the record can be redriven.
  package let isWhole: Bool
  /// The send that the record carries; nil if it cannot be read.
  package let send: SendID?

  package init(_ letter: DeadLetter, at place: LogPlace) {
    self.place = place
    reason = letter.reason
    detail = letter.detail
    origin = letter.origin
    at = letter.at
    valueSize = letter.valueSize
    isWhole = letter.isWhole
    send = letter.decodedRecord()?.send.id
  }
}

/// An order to redrive letters.
package struct RedriveOrder: Sendable {
  /// The most letters that one order may redrive.
  package static let maximumCount = 500

  package enum Selection: Sendable {
    /// The letters at these places, at most `maximumCount`.
    case places(Set<LogPlace>)
    /// The letters with this reason, up to `maximumCount` of them.
    case reason(DeadLetter.Reason)
  }

  package let selection: Selection
  /// Where the order before ended: only letters from these offsets on; nil: from the oldest on.
  package let after: DeadLetterPosition?
  /// Whether nothing is produced, and only the result is determined.
  package let isDryRun: Bool
  /// Whether letters that were redriven before are redriven again.
  package let isRepeated: Bool
  /// Whether the caller may see a letter; others are ignored.
  package let isVisible: @Sendable (DeadLetter) -> Bool

  package init(
    selection: Selection, after: DeadLetterPosition? = nil, isDryRun: Bool, isRepeated: Bool,
    isVisible: @escaping @Sendable (DeadLetter) -> Bool
  ) {
    self.selection = selection
    self.after = after
    self.isDryRun = isDryRun
    self.isRepeated = isRepeated
    self.isVisible = isVisible
  }
}

/// The numbers of letters by result of a redrive.
package struct RedriveOutcome: Encodable, Sendable {
  /// The redriven records; in a dry run, the records that a real run would redrive.
  package var redriven = 0
  /// Letters skipped because they were redriven before.
  package var redrivenBefore = 0
  /// Letters with a truncated value, which cannot be redriven.
  package var cut: [LogPlace] = []
  /// Letters of records from topics that workers do not read.
  package var foreign: [LogPlace] = []
  /// Letters that could not be read.
  package var unreadable = 0
  /// Where the next order begins, if selected letters were left out because of the limit.
  package var next: DeadLetterPosition?
  /// The selected letters that exist, if they were selected by their places.
  package var found: Set<LogPlace> = []

  package init() {}

  private enum CodingKeys: CodingKey { case redriven, redrivenBefore, cut, foreign, unreadable }

  /// Encodes what `fanfare dead-letters redrive --json` prints.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(redriven, forKey: .redriven)
    try container.encode(redrivenBefore, forKey: .redrivenBefore)
    try container.encode(cut.map(\.description), forKey: .cut)
    try container.encode(foreign.map(\.description), forKey: .foreign)
    try container.encode(unreadable, forKey: .unreadable)
  }
}
