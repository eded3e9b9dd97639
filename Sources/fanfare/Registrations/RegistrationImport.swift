import FanfareCore
import Foundation
import Registry
import Roles

/// Imports a file of registrations in batches of lines, a few batches at the same time.
///
/// One task reads and checks the file in order while the store writes earlier batches. Batches that share an id, a
/// handle or an installation are written one after the other, so that the last of several lines for a device wins. One
/// case has no order: one line has a device's id and another its former handle, and only the registry connects the two.
struct RegistrationImport {
  /// The import skipped more lines than allowed.
  struct TooManyErrors: Error, CustomStringConvertible {
    let maximum: Int

    var description: String {
      "more than \(maximum) lines were skipped (--max-errors); the file is imported up to about that line"
    }
  }

  let store: any RegistrationImportStore
  let hub: HubName
  /// The number of lines that may be skipped.
  let maximumErrors: Int
  let clock: any WallClock
  /// Called for each skipped line, with the reason.
  let complain: (_ line: Int, _ reason: String) -> Void
  /// Called after each batch, with the counts of this run and the offset reached so far.
  let report: (_ counts: ImportCounts, _ offset: Int64) -> Void

  /// A batch in progress.
  private struct Running {
    /// Hashes of the ids, handles and installations in its lines.
    let keys: Set<Int>
  }

  /// Imports all unfinished batches and returns their counts.
  ///
  /// Throws `TooManyErrors` and the store's errors; finished batches stay finished.
  func run(_ batches: inout LineBatches, of file: ImportID?) async throws -> ImportCounts {
    let limit = store.importShape.batches
    return try await withThrowingTaskGroup(of: (number: Int, outcome: ImportOutcome).self) { group in
      var (running, counts, skipped, number) = ([Int: Running](), ImportCounts(), 0, 0)
      func finish(_ done: (number: Int, outcome: ImportOutcome)?, at offset: Int64) throws {
        guard let (number, outcome) = done else { return }
        running[number] = nil
        counts += outcome.counts
        skipped += outcome.refusals.count
        for refusal in outcome.refusals { complain(refusal.line, refusal.reason) }
        report(counts, offset)
        guard skipped <= maximumErrors else { throw TooManyErrors(maximum: maximumErrors) }
      }
      while let lines = try batches.next() {
        let (batch, keys) = try read(lines, of: file, skipped: &skipped)
        while running.count >= limit || running.values.contains(where: { !$0.keys.isDisjoint(with: keys) }) {
          try finish(try await group.next(), at: batches.offset)
        }
        number += 1
        running[number] = Running(keys: keys)
        group.addTask { [store, clock, number] in (number, try await store.take(batch, at: clock.now())) }
      }
      while let done = try await group.next() { try finish(done, at: batches.offset) }
      return counts
    }
  }

  /// Parses the lines of a batch. The set of keys is empty if batches are written one by one.
  private func read(
    _ lines: LineBatches.Batch, of file: ImportID?, skipped: inout Int
  ) throws -> (ImportBatch, keys: Set<Int>) {
    var (taken, keys, counts) = ([RegistrationLine](), Set<Int>(), ImportCounts())
    let (now, needsKeys) = (clock.now(), store.importShape.batches > 1)
    taken.reserveCapacity(lines.lineCount)
    if needsKeys { keys.reserveCapacity(lines.lineCount * 2) }
    counts.lines = lines.lineCount
    func skip(_ line: Int, _ reason: String) throws {
      counts.skipped += 1
      skipped += 1
      complain(line, reason)
      guard skipped <= maximumErrors else { throw TooManyErrors(maximum: maximumErrors) }
    }
    let tooLong = "is longer than \(RegistrationLine.maximumLength) bytes"
    if lines.content.isEmpty { try skip(lines.firstLine, tooLong) }
    var (rest, number) = (lines.content, lines.firstLine)
    while !rest.isEmpty {
      let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
      let bytes = rest[rest.startIndex..<end]
      rest = rest[min(end + 1, rest.endIndex)...]
      defer { number += 1 }
      guard bytes.count <= RegistrationLine.maximumLength else {
        try skip(number, tooLong)
        continue
      }
      // An empty line, possibly with a carriage return.
      guard !bytes.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\t") })
      else {
        continue
      }
      do throws(JSONError) {
        let line = try RegistrationLine(bytes, number: number, hub: hub, at: now)
        taken.append(line)
        guard needsKeys else { continue }
        keys.insert(line.registration.id.hashValue)
        keys.insert(line.registration.handle.hashValue)
        if let installation = line.registration.installation { keys.insert(installation.hashValue) }
      } catch {
        try skip(number, error.description)
      }
    }
    return (ImportBatch(hub: hub, file: file, bytes: lines.bytes, lines: taken, counts: counts), keys)
  }
}

/// The result of an import, over all its runs.
struct ImportSummary: OutputLine {
  let read: Int
  let imported: Int
  let replaced: Int
  let unchanged: Int
  let outdated: Int
  let skipped: Int
  /// Lines read by earlier runs.
  let readBefore: Int
  /// The duration of this run.
  let seconds: Double
  /// The registrations per second of this run.
  let perSecond: Double

  init(_ counts: ImportCounts, before: Int, seconds: Double) {
    (read, imported, replaced) = (counts.read, counts.imported, counts.replaced)
    (unchanged, outdated, skipped) = (counts.unchanged, counts.outdated, counts.skipped)
    readBefore = before
    self.seconds = (seconds * 1000).rounded() / 1000
    perSecond = seconds > 0 ? (Double(counts.read - before) / seconds).rounded() : 0
  }

  /// The summary as a line of text.
  var text: String {
    """
    \(read) read\(readBefore > 0 ? " (\(readBefore) of them by earlier runs)" : ""): \(imported) imported, \(replaced) replaced, \
    \(unchanged) unchanged, \(outdated) outdated, \(skipped) skipped; \(seconds.text) s, \(Int(clamping: perSecond))/s
    """
  }
}
