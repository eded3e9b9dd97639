import ArgumentParser
import AzureHub
import FanfareCore
import Foundation
import Roles
import SettingsTable

extension AzureCommand {
  /// `fanfare azure import`
  struct Import: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "import",
      abstract: "Takes over the registrations of a hub of Azure Notification Hubs.",
      discussion: """
        Either from the file that an export job wrote (--file), or page by page through the REST API (--from), which \
        needs a connection string of a rule with the right Manage, in a file that only you may read. Registrations are \
        first written to the spool, as lines that `fanfare registrations import` knows, and then imported. An \
        interrupted command continues when it is run again with the same spool; when all is done the spool is deleted.

        Tags, templates, push variables and ids stay as they are, so that apps and back ends notice nothing. \
        $InstallationId:{x} becomes the registration's installation, $UserId:{x} or the tag username:x its user; a \
        registration without either gets a user of its own. Registrations of services that Fanfare does not have are \
        left out and named on standard error by their ids.

        A registration that its app has renewed here since the import began stays as it is. To import again after the \
        applications have changed over, give the time that the first import printed with --as-of: then all that was \
        renewed here since the first import stays.

        The status is 0 if no registration was left out, 1 if some were or the import failed, 78 if the configuration \
        cannot be used.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(
      help: ArgumentHelp("The file of an export job, unpacked, one registration a line.", valueName: "file"),
      completion: .file())
    var file: String?

    @Option(
      help: ArgumentHelp("A file with the connection string to read from.", valueName: "file"), completion: .file())
    var from: String?

    @Option(
      help: ArgumentHelp("The hub to read; default: the EntityPath of the connection string.", valueName: "name"))
    var azureHub: String?

    @Option(help: ArgumentHelp("Registrations per second to read, 1 to 100000.", valueName: "count"))
    var rate = 1000

    @Option(
      help: ArgumentHelp("Certificates (PEM) to trust instead of the system's.", valueName: "file"),
      completion: .file())
    var trustRoots: String?

    @Option(help: ArgumentHelp("The file in between.", valueName: "file"), completion: .file())
    var spool = "azure-registrations.ndjson"

    @Option(help: ArgumentHelp("Stop when more registrations than this were left out.", valueName: "count"))
    var maxErrors = 1000

    @Option(
      parsing: .unconditional,
      help: ArgumentHelp(
        "Keep registrations that were renewed here after this time; default: the start of the import. \(TimeArgument.help)",
        valueName: "time"))
    var asOf: TimeArgument?

    @Flag(help: "Print the summary as one JSON object.")
    var json = false

    func validate() throws {
      guard (file == nil) != (from == nil) else { throw ValidationError("give either --file or --from") }
      guard (1...100_000).contains(rate) else { throw ValidationError("--rate must be 1 to 100000") }
      guard maxErrors >= 0 else { throw ValidationError("--max-errors must not be negative") }
      guard asOf.map({ $0.time <= SystemWallClock().now() }) ?? true else {
        throw ValidationError("--as-of must not be in the future")
      }
    }

    func run() async throws {
      // Before anything is read.
      let settings = try common.settings()
      _ = try await target.open(settings)
      var spool: RegistrationSpool
      do {
        spool = try await fill()
      } catch let error as RegistrationSpool.Unusable {
        throw ValidationError("--spool: \(error)")
      } catch let error where !(error is ValidationError || error is CancellationError || error is ExitCode) {
        Console.error("fanfare: \(ErrorWords(settings).text(error))")
        Console.error("fanfare: run the same command again; it continues after the last page in the spool")
        throw ExitCode.failure
      }
      let imported = try await RegistrationsCommand.Import.take(
        try ImportSource(path: self.spool), into: target, settings: settings, maxErrors: maxErrors)
      let summary = MigrationSummary(imported, leftOut: spool.place.skipped, asOf: spool.place.time)
      if imported.skipped == 0 {
        try spool.delete()
      } else {
        Console.error(
          "fanfare: \(self.spool) is kept for the skipped lines: the same command imports it again; delete it and "
            + "\(self.spool).progress to read the whole hub again")
      }
      try Console.print(summary, isJSON: json)
      if imported.skipped > 0 || spool.place.skipped > 0 { throw ExitCode.failure }
    }

    /// Reads all that the spool lacks.
    private func fill() async throws -> RegistrationSpool {
      if let file {
        let export: ExportFile
        do { export = try ExportFile(path: file) } catch {
          throw ValidationError("--file: cannot be read: \(file)")
        }
        return try await fill(from: "file \(export.identity)", rate: nil) { try export.page(at: $0, asOf: $1) }
      }
      let connection = try connection()
      guard let hub = azureHub ?? connection.hub else {
        throw ValidationError("--azure-hub is missing: the connection string names no hub")
      }
      return try await AzurePages.with(
        connection, hub: hub, trustRootsFile: trustRoots, complain: { Console.error("fanfare: \($0)") }
      ) { pages in
        try await fill(from: "\(connection.base)/\(hub)", rate: rate) {
          try await pages.page(at: $0, asOf: $1)
        }
      }
    }

    private func connection() throws -> AzureConnection {
      let path = from ?? ""
      if let problem = PrivateFile.problem(at: path) { throw ValidationError("--from: \(path): \(problem)") }
      guard let data = FileManager.default.contents(atPath: path) else {
        throw ValidationError("--from: cannot be read: \(path)")
      }
      do throws(AzureConnection.Invalid) { return try AzureConnection(String(decoding: data, as: UTF8.self)) } catch {
        throw ValidationError("--from: the connection string in \(path) \(error)")
      }
    }

    private func fill(
      from source: String, rate: Int?,
      _ page: (String?, UnixTime) async throws -> (entries: AzureRegistrations, next: String?)
    ) async throws -> RegistrationSpool {
      var spool = try RegistrationSpool(path: spool, source: source, asOf: asOf?.time)
      let progress = TransferProgress()
      let clock = ContinuousClock()
      let (start, before) = (clock.now, spool.place.count)
      if before > 0 { Console.error("fanfare: continues with the spool: \(before) registrations were read before") }
      while !spool.place.isComplete {
        let (entries, next) = try await page(spool.place.continuation, spool.place.time)
        for refusal in entries.refusals {
          progress.interrupt()
          Console.error("left out: \(Printable.line(refusal.registration)): \(Printable.line(refusal.reason))")
        }
        try spool.append(entries.lines, count: entries.count, skipped: entries.refusals.count, continuation: next)
        guard spool.place.skipped <= maxErrors else {
          progress.interrupt()
          Console.error(
            "fanfare: \(spool.place.skipped) registrations were left out; with a higher --max-errors the command continues"
          )
          throw ExitCode.failure
        }
        let read = spool.place.count - before
        progress.show(TransferProgress.State(count: read, detail: "read"))
        if let rate, next != nil { try await clock.sleep(until: start + .seconds(Double(read) / Double(rate))) }
      }
      progress.interrupt()
      return spool
    }
  }
}

/// The result of `fanfare azure import`.
struct MigrationSummary: OutputLine {
  let imported: ImportSummary
  /// Registrations that Fanfare cannot have.
  let leftOut: Int
  /// The moment of the registrations, for another import.
  let asOf: String

  init(_ imported: ImportSummary, leftOut: Int, asOf: UnixTime) {
    (self.imported, self.leftOut, self.asOf) = (imported, leftOut, asOf.description)
  }

  var text: String {
    imported.text + (leftOut > 0 ? "; \(leftOut) left out" : "") + "\nto import again: --as-of \(asOf)"
  }
}
