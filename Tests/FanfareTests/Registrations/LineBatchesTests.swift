import Foundation
import Registry
import Testing

@testable import fanfare

@Suite struct LineBatchesTests {
  /// Lines of many lengths, one of them too long; the last has no line break.
  private static let text =
    (0..<200).map { number in "line \(number) \(String(repeating: "x", count: number * 7 % 90))\n" }.joined()
    + String(repeating: "y", count: RegistrationLine.maximumLength + 10) + "\n\n\nlast"

  private func batches(
    _ text: String, batchBytes: Int, finished: [FinishedImportBatch] = []
  ) throws -> (all: [LineBatches.Batch], passedOver: ImportCounts) {
    let url = FileManager.default.temporaryDirectory.appending(path: "fanfare-lines-\(UUID())")
    try Data(text.utf8).write(to: url)
    // A failure to remove it leaves only a temporary file.
    defer { try? FileManager.default.removeItem(at: url) }
    var batches = LineBatches(try FileHandle(forReadingFrom: url), batchBytes: batchBytes, finished: finished)
    var all: [LineBatches.Batch] = []
    while let batch = try batches.next() { all.append(batch) }
    return (all, batches.passedOver)
  }

  @Test(arguments: [1, 10, 100, 1000, 65_536, 1_000_000])
  func batchesAreWholeLinesThatCoverTheFile(batchBytes: Int) throws {
    let (all, _) = try batches(Self.text, batchBytes: batchBytes)
    var (offset, line) = (Int64(0), 1)
    let bytes = Array(Self.text.utf8)
    for batch in all {
      #expect(batch.bytes.lowerBound == offset && batch.firstLine == line)
      let content = bytes[Int(batch.bytes.lowerBound)..<Int(batch.bytes.upperBound)]
      #expect(batch.content.isEmpty ? batch.lineCount == 1 : batch.content.elementsEqual(content))
      #expect(
        batch.lineCount == content.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).count
          - (content.last == UInt8(ascii: "\n") ? 1 : 0))
      #expect(batch.content.count <= max(batchBytes, 1))
      (offset, line) = (batch.bytes.upperBound, line + batch.lineCount)
    }
    #expect(offset == Int64(bytes.count) && line == 205)
  }

  @Test(arguments: [1000, 70_000]) func finishedBatchesAreSkipped(batchBytes: Int) throws {
    let (all, _) = try batches(Self.text, batchBytes: batchBytes)
    // Every second batch is finished, as after a crash while several were in progress. The rest is also read with other
    // batch sizes.
    let finished = all.enumerated().filter { $0.offset % 2 == 1 }.map { _, batch in
      var counts = ImportCounts()
      counts.lines = batch.lineCount
      return FinishedImportBatch(bytes: batch.bytes, counts: counts)
    }
    for size in [batchBytes, 300, 100_000] {
      let (rest, passedOver) = try batches(Self.text, batchBytes: size, finished: finished)
      let covered = (rest.map(\.bytes) + finished.map(\.bytes)).sorted { $0.lowerBound < $1.lowerBound }
      #expect(zip(covered, covered.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound }, "\(size)")
      #expect(covered.first?.lowerBound == 0 && covered.last?.upperBound == Int64(Self.text.utf8.count), "\(size)")
      #expect(rest.reduce(passedOver.lines) { $0 + $1.lineCount } == 204, "\(size)")
      for batch in rest {
        let before = Array(Self.text.utf8)[..<Int(batch.bytes.lowerBound)].count { $0 == UInt8(ascii: "\n") }
        #expect(batch.firstLine == before + 1, "\(size)")
      }
    }
  }

  @Test func emptyFileHasNoBatches() throws {
    #expect(try batches("", batchBytes: 100).all.isEmpty)
    #expect(try batches("\n", batchBytes: 100).all.map(\.lineCount) == [1])
  }
}
