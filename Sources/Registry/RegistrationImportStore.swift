package import FanfareCore

/// Where registrations are taken in by the thousand, as a file brings them. Called by `fanfare registrations import`
/// alone; throws `RegistryError`, and then nothing was changed, unless the error says that this is unknown.
///
/// Every method may be called from any task at any time, while apps register and workers read.
package protocol RegistrationImportStore: Sendable {
  /// How many batches are worth being taken at the same time, and how many bytes of a file each should have. Batches
  /// that are taken at the same time must have no id, handle or installation in common, or it is left to chance which
  /// of their lines is the last.
  var importShape: (batches: Int, bytes: Int) { get }

  /// Takes the lines of a batch in their order as one transaction, and with it the note that the batch is done. Where
  /// there is that note already nothing is taken: the outcome is what it says, without the refusals.
  ///
  /// A line puts its registration in the place of what has its id or its handle, or is its installation's, as if the
  /// device registered anew: of several lines the last wins. But not in the place of what the registry has heard of
  /// after the line's `seenAt`; and not in that of another user's registration with another handle.
  func take(_ batch: ImportBatch, at now: UnixTime) async throws -> ImportOutcome

  /// The batches of a file that are done, in the order of their bytes.
  func finishedBatches(of file: ImportID, hub: HubName) async throws -> [FinishedImportBatch]

  /// Forgets the notes: the file is done. Notes of files that nobody goes on with are forgotten after a month or so.
  func forget(_ file: ImportID, hub: HubName) async throws
}

/// Phantom type of a file's id.
package enum ImportSubject {}

/// What tells one file from another. Not random.
package typealias ImportID = Identifier<ImportSubject>

/// Some lines of a file that follow one another.
package struct ImportBatch: Sendable {
  package let hub: HubName
  /// Nil where nobody can go on with the file later: then no note is made.
  package let file: ImportID?
  /// Where the batch stands in the file.
  package let bytes: Range<Int64>
  /// The lines that can be taken.
  package let lines: [RegistrationLine]
  /// What is known of the batch before it is taken: how many lines it has, and how many of them are of no use.
  package let counts: ImportCounts

  package init(hub: HubName, file: ImportID?, bytes: Range<Int64>, lines: [RegistrationLine], counts: ImportCounts) {
    self.hub = hub
    self.file = file
    self.bytes = bytes
    self.lines = lines
    self.counts = counts
  }
}

/// What became of a batch.
package struct ImportOutcome: Sendable {
  /// Of all its lines.
  package var counts: ImportCounts
  /// The lines that were refused, and why; no handle is named.
  package var refusals: [(line: Int, reason: String)] = []

  package init(counts: ImportCounts) {
    self.counts = counts
  }
}

/// A batch that is done.
package struct FinishedImportBatch: Hashable, Sendable {
  package let bytes: Range<Int64>
  package let counts: ImportCounts

  package init(bytes: Range<Int64>, counts: ImportCounts) {
    self.bytes = bytes
    self.counts = counts
  }
}
