import FanfareCore
import Foundation
import Registry

/// Takes a file of registrations in, a batch of its lines at a time and a few batches at the same time.
///
/// The file is read and checked by one task, in order, while the store takes what was read before. Batches that share
/// an id, a handle or an installation are taken one after the other: so of several lines for one device the last wins,
/// as if there were no batches. Only what the registry alone ties together, a line that names a device's id and another
/// that names its former handle, may come in either order.
struct RegistrationImport {
  /// It was given up: more lines were skipped than may be.
  struct TooManyErrors: Error, CustomStringConvertible {
    let maximum: Int

    var description: String {
      "more than \(maximum) lines were skipped (--max-errors); the file is imported up to about there"
    }
  }

  let store: any RegistrationImportStore
  let hub: HubName
  /// How many lines may be skipped.
  let maximumErrors: Int
  let clock: any WallClock
  /// Is told each line that is skipped, and why.
  let complain: (_ line: Int, _ reason: String) -> Void
  /// Is told, after each batch, what became of the lines of this run and up to where the file was read.
  let report: (_ counts: ImportCounts, _ offset: Int64) -> Void

  /// A batch that is being taken.
  private struct Running {
    /// Hashes of all that its lines name.
    let keys: Set<Int>
  }

  /// Takes in all batches that are not done. Returns what became of their lines. Throws `TooManyErrors`, and what the
  /// store throws; what is done then stays done.
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

  /// Reads and checks the lines of a batch. The keys are those of nothing where batches are taken one by one.
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
      // Empty, or what Windows makes of that.
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
