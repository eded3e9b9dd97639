import RDKafka
import Roles

/// Reads spans of the log to their ends, one batch after another, and says on standard error how far it has come when
/// that takes long.
struct TopicScan {
  /// What progress is reported as: the command's name.
  let command: String
  let reader: LogReader

  /// How long nothing is said.
  private static let patience = Duration.seconds(3)

  /// Hands over every record of the spans: in order within a partition, in any order between them. What is written
  /// behind the ends in the meantime is not read. `take` says whether to go on.
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
