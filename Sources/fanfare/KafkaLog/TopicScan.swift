import RDKafka
import Roles

/// Reads spans of topics to their ends, and reports progress of long scans on standard error.
struct TopicScan {
  /// The command's name, for progress reports.
  let command: String
  let reader: LogReader

  /// The interval between progress reports.
  private static let patience = Duration.seconds(3)

  /// Passes every record of the spans to `take`, in order within a partition.
  ///
  /// `take` returns whether to continue. Records beyond the ends are not read.
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
