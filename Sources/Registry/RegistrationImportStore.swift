package import FanfareCore

/// The bulk import of registrations from files, used by `fanfare registrations import`.
///
/// Methods may be called from any task, while apps register and workers read. They throw `RegistryError`; then nothing
/// was changed, unless the error has `isOutcomeUnknown`.
package protocol RegistrationImportStore: Sendable {
  /// The useful number of concurrent batches and the bytes of a file in each. Concurrent batches must not share an id,
  /// handle or installation, or the order of their lines is undefined.
  var importShape: (batches: Int, bytes: Int) { get }

  /// Imports the lines of a batch in order, as one transaction that also marks the batch as finished. A batch that is
  /// already marked is not imported again: the outcome is the stored one, without the refusals.
  ///
  /// A line replaces the registration with its id, its handle or its installation, as if the device registered again,
  /// so the last of several lines wins. It does not replace a registration that was seen after the line's `seenAt`, nor
  /// another user's registration with another handle.
  func take(_ batch: ImportBatch, at now: UnixTime) async throws -> ImportOutcome

  /// The finished batches of a file, in the order of their bytes.
  func finishedBatches(of file: ImportID, hub: HubName) async throws -> [FinishedImportBatch]

  /// Forgets the finished batches of a file that is completely imported. Those of abandoned files are purged after
  /// about a month.
  func forget(_ file: ImportID, hub: HubName) async throws
}

/// Phantom type of ``ImportID``.
package enum ImportSubject {}

/// The id of an import file; a digest, not random.
package typealias ImportID = Identifier<ImportSubject>

/// Consecutive lines of a file.
package struct ImportBatch: Sendable {
  package let hub: HubName
  /// Nil when the import cannot be continued later: then the batch is not marked as finished.
  package let file: ImportID?
  /// The position of the batch in the file.
  package let bytes: Range<Int64>
  /// The valid lines.
  package let lines: [RegistrationLine]
  /// The counts known before the import: all lines and the invalid ones.
  package let counts: ImportCounts

  package init(hub: HubName, file: ImportID?, bytes: Range<Int64>, lines: [RegistrationLine], counts: ImportCounts) {
    self.hub = hub
    self.file = file
    self.bytes = bytes
    self.lines = lines
    self.counts = counts
  }
}

/// The result of a batch.
package struct ImportOutcome: Sendable {
  /// The counts of all its lines.
  package var counts: ImportCounts
  /// The refused lines with the reasons, which name no handle.
  package var refusals: [(line: Int, reason: String)] = []
  /// The surplus devices that were removed.
  var surplus = 0

  package init(counts: ImportCounts) {
    self.counts = counts
  }
}

/// A finished batch.
package struct FinishedImportBatch: Hashable, Sendable {
  package let bytes: Range<Int64>
  package let counts: ImportCounts

  package init(bytes: Range<Int64>, counts: ImportCounts) {
    self.bytes = bytes
    self.counts = counts
  }
}

/// The number of lines by result.
package struct ImportCounts: Hashable, Sendable {
  /// All lines, including empty ones.
  package var lines = 0
  /// New registrations.
  package var imported = 0
  /// Registrations that replaced others.
  package var replaced = 0
  /// Registrations that were already stored exactly so.
  package var unchanged = 0
  /// Lines about registrations that were seen later than the line says.
  package var outdated = 0
  /// Invalid lines, and registrations that were refused.
  package var skipped = 0

  package init() {}

  /// The lines that are not empty.
  package var read: Int { [imported, replaced, unchanged, outdated, skipped].clampedSum() }

  package static func += (left: inout Self, right: Self) {
    for field in fields { left[keyPath: field].addClamped(right[keyPath: field]) }
  }

  /// The counts in the order of ``columns``.
  static var fields: [WritableKeyPath<Self, Int>] {
    [\.lines, \.imported, \.replaced, \.unchanged, \.outdated, \.skipped]
  }

  /// The columns of the counts in the table `import_batches`.
  static let columns = "lines, imported, replaced, unchanged, outdated, skipped"

  /// Reads the stored counts.
  init(_ numbers: [Int64]) {
    for (field, number) in zip(Self.fields, numbers) { self[keyPath: field] = Int(number) }
  }
}
