import ArgumentParser
import FanfareCore
import Foundation
import Registry
import Roles
import SettingsTable

extension RegistrationsCommand {
  /// `fanfare registrations export`
  struct Export: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "export",
      abstract: "Writes the registrations as JSON, one object per line, in ascending order of ids.",
      discussion: """
        A line is the answer of GET /api/registrations/{id}: id, user, platform, handle, installation (if any), tags, \
        template, tile, locale, timeZone, attributes (if any), registeredAt, createdAt, lastSeen. A device has a line \
        for itself and one for each of its templates and secondary tiles. `fanfare registrations import` restores the \
        same registrations from it. Ids that were issued and never completed are left out. The registry is read page by page while it is in use: a \
        registration that changes meanwhile is exported before or after the change. Anyone with the app's credentials \
        can push to a handle: protect the output like the database.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(
      help: ArgumentHelp(
        "The file to write instead of standard output. It appears, or replaces another, only when it is complete.",
        valueName: "file"),
      completion: .file())
    var output: String?

    @Option(help: "Only registrations of this user.")
    var user: String?

    @Option(parsing: .upToNextOption, help: "Only registrations of these platforms.")
    var platform: [PlatformArgument] = []

    func validate() throws {
      if let user, !UserName.isValid(user) { throw ValidationError("--user must be \(UserName.rule)") }
    }

    func run() async throws {
      // Without a file there is nothing to remove after a signal.
      if output == nil { try await export() } else { try await endingWithSignals { try await export() } }
    }

    private func export() async throws {
      // Opened first, so that an unusable path fails before the registrations are read.
      let file = try output.map(Self.file(at:))
      do {
        let (hub, directory) = try await target.open(common, mustExist: true)
        let platforms =
          platform.isEmpty ? PlatformSet.all : platform.reduce(into: []) { $0.formUnion(PlatformSet($1.platform)) }
        try await write(RegistrationExport(directory: directory, hub: hub, user: user, platforms: platforms), to: file)
      } catch {
        file?.abandon()
        throw error
      }
    }

    /// Opens the output file.
    private static func file(at path: String) throws -> ReplacedFile {
      do { return try ReplacedFile(path: path) } catch is ReplacedFile.Irregular {
        throw ValidationError("--output: must be a regular file: \(path)")
      } catch {
        throw ValidationError("--output: cannot be written: \(path)")
      }
    }

    /// Writes the export to the file, or to standard output, and reports progress.
    private func write(_ export: RegistrationExport, to file: ReplacedFile?) async throws {
      let progress = TransferProgress()
      defer { progress.interrupt() }
      let count = try await export.run(
        to: { bytes in
          if let file {
            try file.write(bytes)
          } else if Console.isTerminal {
            // Each line has its end already.
            Console.print(jsonText: String(decoding: bytes, as: UTF8.self).trimmingSuffix { $0.isNewline })
          } else {
            try FileHandle.standardOutput.write(contentsOf: bytes)
          }
        },
        report: { count, share in progress.show(TransferProgress.State(count: count, share: share)) })
      try file?.finish()
      progress.interrupt()
      let seconds = progress.elapsed / .seconds(1)
      Console.error("\(count) exported; \(seconds.text) s, \(Int(clamping: Double(count) / max(seconds, 0.001)))/s")
    }
  }
}
