package import RDKafka

/// Reads spans of topics to their ends.
package struct TopicScan: Sendable {
  /// What a scan does when it takes long.
  package enum Patience: Sendable {
    /// Reports its progress on standard error, in the name of the command.
    case reports(command: String)
    /// Throws `TooLong`.
    case ends(at: ContinuousClock.Instant)
  }

  /// The spans hold more records than can be read in the given time.
  package struct TooLong: Error {}

  let patience: Patience
  package let reader: LogReader

  package init(_ patience: Patience, reader: LogReader) {
    self.patience = patience
    self.reader = reader
  }

  /// The interval between progress reports.
  private static let reportInterval = Duration.seconds(3)

  /// Passes every record of the spans to `take`, in order within a partition.
  ///
  /// `take` returns whether to continue. Records beyond the ends are not read.
  /// Throws `TooLong` and the errors of the reader and of `take`.
  package func read(_ spans: [LogSpan], _ take: ([ConsumedRecord]) async throws -> Bool) async throws {
    guard spans.contains(where: { $0.count > 0 }) else { return }
    let scan = try reader.scan(spans)
    let total = spans.reduce(0) { $0 + $1.count }
    var (done, next) = (0, ContinuousClock.now + Self.reportInterval)
    while let records = try await scan.next() {
      done += records.count
      guard try await take(records) else { return }
      switch patience {
      case .ends(let end): guard ContinuousClock.now < end else { throw TooLong() }
      case .reports(let command):
        guard ContinuousClock.now >= next else { continue }
        next = .now + Self.reportInterval
        Console.error("fanfare \(command): \(done) of \(total) records read")
      }
    }
  }
}
