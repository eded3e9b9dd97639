import Registry
import Roles

/// What an import has done, as it is printed in the end: of the whole file, whatever number of runs it took.
struct ImportSummary: Encodable {
  let read: Int
  let imported: Int
  let replaced: Int
  let unchanged: Int
  let outdated: Int
  let skipped: Int
  /// What of it was read by earlier runs.
  let readBefore: Int
  /// Of this run.
  let seconds: Double
  /// Registrations a second of this run.
  let perSecond: Double

  init(_ counts: ImportCounts, before: Int, seconds: Double) {
    (read, imported, replaced) = (counts.read, counts.imported, counts.replaced)
    (unchanged, outdated, skipped) = (counts.unchanged, counts.outdated, counts.skipped)
    readBefore = before
    self.seconds = (seconds * 1000).rounded() / 1000
    perSecond = seconds > 0 ? (Double(counts.read - before) / seconds).rounded() : 0
  }

  /// In one line of text.
  var text: String {
    """
    \(read) read\(readBefore > 0 ? " (\(readBefore) of them by earlier runs)" : ""): \(imported) imported, \(replaced) replaced, \
    \(unchanged) unchanged, \(outdated) outdated, \(skipped) skipped; \(seconds.text) s, \(Int(perSecond))/s
    """
  }
}
