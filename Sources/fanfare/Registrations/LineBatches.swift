import FanfareCore
import Foundation
import Registry

/// Splits a file of lines into batches, and skips the finished ones.
///
/// It keeps little more than one batch in memory, even if lines are very long.
struct LineBatches {
  /// Consecutive lines.
  struct Batch {
    /// Their byte range in the file.
    let bytes: Range<Int64>
    /// Their bytes; empty for a single line above the limit.
    let content: ArraySlice<UInt8>
    /// The number of the first line, from 1.
    let firstLine: Int
    /// The number of lines, including empty ones.
    let lineCount: Int
  }

  private static let newline = UInt8(ascii: "\n")
  /// Bytes per read.
  private static let piece = 256 * 1024

  private let file: FileHandle
  private let batchBytes: Int
  private var finished: ArraySlice<FinishedImportBatch>
  /// Bytes read from `offset` on that belong to no batch yet.
  private var buffer: [UInt8] = []
  private var isAtEnd = false
  private var nextLine = 1
  /// The offset of the next batch.
  private(set) var offset: Int64 = 0
  /// The counts of the skipped batches.
  private(set) var passedOver = ImportCounts()

  /// Reads a file from its beginning in batches of about `batchBytes`.
  ///
  /// `finished` must be empty for a file that cannot seek.
  init(_ file: FileHandle, batchBytes: Int, finished: [FinishedImportBatch] = []) {
    self.file = file
    self.batchBytes = max(1, batchBytes)
    self.finished = finished[...]
  }

  /// The next batch; nil at the end.
  mutating func next() throws -> Batch? {
    while let done = finished.first, done.bytes.lowerBound <= offset {
      finished.removeFirst()
      guard done.bytes.lowerBound == offset else { continue }
      try file.seek(toOffset: UInt64(done.bytes.upperBound))
      (offset, buffer, isAtEnd) = (done.bytes.upperBound, [], false)
      nextLine += done.counts.lines
      passedOver += done.counts
    }
    let limit = Int(min(Int64(batchBytes), (finished.first?.bytes.lowerBound ?? .max) - offset))
    try fill(upTo: limit)
    guard !buffer.isEmpty else { return nil }
    if let end = buffer[..<min(limit, buffer.count)].lastIndex(of: Self.newline) { return take(end + 1) }
    if isAtEnd && buffer.count <= limit && buffer.count <= RegistrationLine.maximumLength { return take(buffer.count) }
    return try takeLongLine()
  }

  private mutating func fill(upTo count: Int) throws {
    buffer.reserveCapacity(count)
    while buffer.count < count, !isAtEnd {
      // A pipe may return fewer bytes.
      guard let data = try file.read(upToCount: min(Self.piece, count - buffer.count)), !data.isEmpty else {
        isAtEnd = true
        return
      }
      buffer.append(contentsOf: data)
    }
  }

  private mutating func take(_ count: Int) -> Batch {
    let content = buffer[..<count]
    buffer = Array(buffer[count...])
    // The last line may have no newline.
    let lineCount = Self.count(of: Self.newline, in: content.span) + (content.last == Self.newline ? 0 : 1)
    return batch(content, bytes: count, lines: lineCount)
  }

  /// Branchless, so that the compiler vectorises it.
  private static func count(of byte: UInt8, in bytes: Span<UInt8>) -> Int {
    var count = 0
    for index in bytes.indices { count += bytes[index] == byte ? 1 : 0 }
    return count
  }

  /// Skips a line that is too long for a batch.
  private mutating func takeLongLine() throws -> Batch {
    var length = 0
    while true {
      if let end = buffer.firstIndex(of: Self.newline) {
        length += end + 1
        buffer = Array(buffer[(end + 1)...])
        break
      }
      length += buffer.count
      buffer = []
      try fill(upTo: batchBytes)
      if buffer.isEmpty { break }
    }
    return batch([], bytes: length, lines: 1)
  }

  private mutating func batch(_ content: ArraySlice<UInt8>, bytes: Int, lines: Int) -> Batch {
    defer {
      offset += Int64(bytes)
      nextLine += lines
    }
    return Batch(bytes: offset..<(offset + Int64(bytes)), content: content, firstLine: nextLine, lineCount: lines)
  }
}
