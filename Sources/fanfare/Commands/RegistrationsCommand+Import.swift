import ArgumentParser
import FanfareCore
import Foundation
import Registry
import Roles

extension RegistrationsCommand {
  /// `fanfare registrations import`
  struct Import: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "import",
      abstract: "Imports registrations from a file with one JSON object per line.",
      discussion: """
        A line has the format that `fanfare registrations export` writes and GET /api/registrations/{id} answers:

        {"id":"7a0c…","user":"alice","platform":"apns","handle":"<hex>",
        "tags":["news"],"installation":"phone-1",
        "registeredAt":"2026-11-21T08:00:00.000Z",
        "createdAt":"2026-01-01T00:00:00Z","lastSeen":"2026-11-21T09:00:00Z"}

        user, platform (apns, fcm or gcm, wns) and handle are required. id defaults to that of the registration with \
        the handle or installation, or to a new one; it must be a random UUID (version 4), or one of version 8 that \
        stands for another system's id, because broadcasts divide their work by evenly spread ids. registeredAt, when \
        the app last reported the handle, defaults to lastSeen or now; createdAt, since when the device is the user's, \
        defaults to registeredAt and is never later. Tags and names follow the rules of the HTTP API.

        template, tile, locale, timeZone and attributes are the device's profile, all optional. A line with a template \
        is that template's registration and stands beside the device's own line, with the same handle; one with a tile \
        is that of a secondary tile of an app on Windows.

        A line has the effect of the device registering again: it replaces any registration with its id, handle or \
        installation, and of several lines for one device the last wins. Two exceptions: a registration that was heard \
        from after the line's lastSeen stays (counted as outdated), and an id or installation of another user is taken \
        over only with the same handle. Tombstones of imported registrations are removed.

        An invalid line is skipped and reported on standard error with its number and the wrong member, never with a \
        handle. The status is 0 if no line was skipped, 1 if some were or the import failed, 78 if the configuration \
        cannot be used.

        Each batch is imported with a note of its place in one transaction. An interrupted import continues when the \
        command is run with the same unchanged file; standard input is read from its start, which does no harm. Apps \
        may register and workers send meanwhile.
        """)

    /// The time limit of a batch in the database. It is long, because no caller waits for the batch.
    private static let patience: Duration = .seconds(600)

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(help: ArgumentHelp("Stop when more lines than this were skipped.", valueName: "count"))
    var maxErrors = 1000

    @Option(help: ArgumentHelp("Bytes per batch.", visibility: .hidden))
    var batchBytes: Int?

    @Flag(help: "Print the summary as one JSON object.")
    var json = false

    @Argument(
      help: ArgumentHelp("The file; standard input if it is missing or -.", valueName: "file"), completion: .file())
    var file: String?

    func validate() throws {
      guard maxErrors >= 0 else { throw ValidationError("--max-errors must not be negative") }
    }

    func run() async throws {
      let source: ImportSource
      do { source = try ImportSource(path: file == "-" ? nil : file) } catch {
        throw ValidationError("<file>: cannot be read: \(file ?? "-")")
      }
      let summary = try await Self.take(
        source, into: target, settings: try common.settings(), maxErrors: maxErrors, batchBytes: batchBytes)
      try Console.print(summary, isJSON: json)
      if summary.skipped > 0 { throw ExitCode.failure }
    }

    /// Imports a file with progress and complaints on standard error. Throws `ExitCode.failure` after an explanation.
    static func take(
      _ source: ImportSource, into target: RegistrationTarget, settings: Settings, maxErrors: Int,
      batchBytes: Int? = nil
    ) async throws -> ImportSummary {
      let (hub, store) = try await target.open(settings, patience: patience)
      let progress = TransferProgress()
      let finished =
        if let identity = source.identity { try await store.finishedBatches(of: identity, hub: hub) } else {
          [FinishedImportBatch]()
        }
      let before = finished.reduce(into: ImportCounts()) { $0 += $1.counts }
      let bytesBefore = finished.reduce(0) { $0 + $1.bytes.upperBound - $1.bytes.lowerBound }
      if !finished.isEmpty {
        Console.error("fanfare: continues with the file: \(before.read) registrations were read before")
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
        Console.error("fanfare: \(ErrorWords(settings).text(error))")
        if source.identity != nil {
          Console.error(
            "fanfare: run the same command with the unchanged file again; it continues after the last batch")
        }
        throw ExitCode.failure
      }
      if let identity = source.identity { try await store.forget(identity, hub: hub) }
      progress.interrupt()
      var all = before
      all += counts
      return ImportSummary(all, before: before.read, seconds: progress.elapsed / .seconds(1))
    }
  }
}
