import ArgumentParser
import FanfareCore
import Foundation
import Registry
import Roles

extension RegistrationsCommand {
  /// `fanfare registrations import`
  struct Import: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "import",
      abstract: "Takes in registrations from a file, one JSON object a line.",
      discussion: """
        A line is what `fanfare registrations export` writes and GET /api/registrations/{id} answers:

          {"id":"7a0c…","user":"alice","platform":"apns","handle":"<hex>","tags":["news"],"installation":"phone-1",
           "registeredAt":"2026-11-21T08:00:00.000Z","createdAt":"2026-01-01T00:00:00Z","lastSeen":"2026-11-21T09:00:00Z"}

        user, platform (apns, fcm or gcm, wns) and handle must be there. id is that of the handle's or the installation's \
        registration where it is missing, or a new one; it must be a random UUID (version 4), for broadcasts divide their work by ids \
        that are spread evenly. registeredAt, when the app reported the handle last, is lastSeen or else now; createdAt, since when the \
        device is the user's, is registeredAt where it is missing or later. Tags and names follow the rules of the HTTP API.

        A line counts as the device registering again: it takes the place of whatever has its id, its handle or its installation, and of \
        several lines for one device the last wins. Two exceptions: what the registry has heard of after the line's lastSeen stays as it is \
        (it is counted as outdated), and an id or an installation of another user is only taken over with the very same handle. Tombstones \
        of what is imported go.

        A line that is of no use is reported on standard error with its number and the member that is wrong, never with a handle, and \
        skipped. The status is 0 if no line was skipped, 1 if some were or if it was given up half-way, 78 if the configuration cannot be used.

        The file is taken in by batches, each with a note of its place in one transaction. What was interrupted, in whatever way, \
        goes on where it stopped when the same unchanged file is given again; standard input is read from its start, which does no harm. \
        Apps may register and workers send meanwhile.
        """)

    /// The limit for a batch in the database; no caller waits for it.
    private static let patience: Duration = .seconds(600)

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(help: ArgumentHelp("Give up when more lines than this were skipped.", valueName: "count"))
    var maxErrors = 1000

    @Option(help: ArgumentHelp("The bytes of a batch.", visibility: .hidden))
    var batchBytes: Int?

    @Flag(help: "Print the summary as one JSON object.")
    var json = false

    @Argument(help: ArgumentHelp("The file; standard input where none is given, or -.", valueName: "file"))
    var file: String?

    func validate() throws {
      guard maxErrors >= 0 else { throw ValidationError("--max-errors must not be negative") }
    }

    func run() async throws {
      let source: ImportSource
      do { source = try ImportSource(path: file == "-" ? nil : file) } catch {
        throw ValidationError("<file>: cannot be read: \(file ?? "-")")
      }
      let (hub, store) = try await target.open(common, patience: Self.patience)
      let progress = TransferProgress()
      let finished =
        if let identity = source.identity { try await store.finishedBatches(of: identity, hub: hub) } else {
          [FinishedImportBatch]()
        }
      let before = finished.reduce(into: ImportCounts()) { $0 += $1.counts }
      let bytesBefore = finished.reduce(0) { $0 + $1.bytes.upperBound - $1.bytes.lowerBound }
      if !finished.isEmpty {
        Console.error("fanfare: goes on with the file: \(before.read) registrations were read before")
      }
      var batches = LineBatches(source.handle, batchBytes: batchBytes ?? store.importShape.bytes, finished: finished)
      let work = RegistrationImport(
        store: store, hub: hub, maximumErrors: maxErrors, clock: SystemWallClock(),
        complain: { line, reason in
          progress.interrupt()
          Console.error("line \(line): \(reason)")
        },
        report: { counts, offset in
          let size = source.size.map { Double(max(1, $0)) }
          progress.show(
            TransferProgress.State(
              count: counts.read, share: size.map { Double(offset) / $0 },
              shareBefore: size.map { Double(bytesBefore) / $0 } ?? 0,
              detail: "\(offset / 1_000_000) MB" + (counts.skipped > 0 ? ", \(counts.skipped) skipped" : "")))
        })
      let counts: ImportCounts
      do { counts = try await work.run(&batches, of: source.identity) } catch {
        progress.interrupt()
        Console.error("fanfare: \(error)")
        if source.identity != nil { Console.error("fanfare: give the same file again to go on with it") }
        throw ExitCode.failure
      }
      if let identity = source.identity { try await store.forget(identity, hub: hub) }
      progress.interrupt()
      var all = before
      all += counts
      let summary = ImportSummary(all, before: before.read, seconds: progress.elapsed / .seconds(1))
      if json { try Console.print(json: summary) } else { Console.print(summary.text) }
      if all.skipped > 0 { throw ExitCode.failure }
    }
  }
}
