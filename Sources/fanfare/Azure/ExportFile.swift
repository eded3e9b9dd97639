import AzureHub
import FanfareCore
import Foundation
import Registry

/// The file that an export job of Azure Notification Hubs wrote: a registration's XML in each line.
struct ExportFile {
  /// Bytes per piece.
  private static let piece = 256 * 1024

  private let path: String
  /// The identity of its contents, for continuing.
  let identity: String

  init(path: String) throws {
    self.path = path
    let source = try ImportSource(path: path)
    guard let identity = source.identity else { throw CocoaError(.fileReadUnknown) }
    self.identity = "\(identity)"
  }

  /// The registrations after a place, as of `time`, and the next place, which is `bytes lines`; nil at the end.
  func page(at continuation: String?, asOf time: UnixTime) throws -> (entries: AzureRegistrations, next: String?) {
    let place = (continuation ?? "0 0").split(separator: " ").compactMap { Int64($0) }
    guard place.count == 2 else { throw CocoaError(.fileReadCorruptFile) }
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    var before = ImportCounts()
    before.lines = Int(place[1])
    let finished = place[0] > 0 ? [FinishedImportBatch(bytes: 0..<place[0], counts: before)] : []
    var batches = LineBatches(file, batchBytes: Self.piece, finished: finished)
    var entries = AzureRegistrations(at: time)
    guard let batch = try batches.next() else { return (entries, nil) }
    if batch.content.isEmpty { entries.refuse(line: batch.firstLine, "is too long") }
    let lines = batch.content.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() where !line.allSatisfy({ $0 <= 0x20 }) {
      entries.add(line: line, number: batch.firstLine + index)
    }
    return (entries, "\(batch.bytes.upperBound) \(batch.firstLine + batch.lineCount - 1)")
  }
}
