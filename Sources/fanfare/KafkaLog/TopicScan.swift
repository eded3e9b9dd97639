import RDKafka
import Roles

/// Reads spans of topics to their ends, and reports progress on standard error if it takes long.
struct TopicScan {
  /// The command's name, for the progress.
  let command: String
  let reader: LogReader

  /// The interval between progress reports.
  private static let patience = Duration.seconds(3)

  /// Passes on every record of the spans, in order within a partition. Records behind the ends are not read. `take`
  /// returns whether to continue.
  func read(_ spans: [LogSpan], _ take: ([ConsumedRecord]) async throws -> Bool) async throws {
    let scan = try reader.scan(spans)
    let total = spans.reduce(0) { $0 + $1.count }
    var (done, next) = (0, ContinuousClock.now + Self.patience)
    while let records = try await scan.next() {
      done += records.count
      guard try await take(records) else { return }
      guard ContinuousClock.now >= next else { continue }
      next = .now + Self.patience
      Console.error("fanfare \(command): \(done) of \(total) records read")
    }
  }
}
