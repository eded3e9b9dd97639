import ArgumentParser
import FanfareCore
import Foundation
import Registry
import Roles

extension RegistrationsCommand {
  /// `fanfare registrations export`
  struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "export",
      abstract: "Writes the registrations, one JSON object a line, by ascending ids.",
      discussion: """
        The lines are what GET /api/registrations/{id} answers: id, user, platform, handle, installation (if it registered by one), tags, \
        registeredAt, createdAt, lastSeen; `fanfare registrations import` reads them back to the same registrations. Ids that are issued \
        and not completed are left out. The registry is read page by page while it goes on being used: what changes meanwhile is there as \
        it was before or as it is afterwards. Handles are what pushes are sent by: keep the output as you keep the database.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(
      help: ArgumentHelp(
        "The file to write instead of standard output; it is there only once it is whole, and then in the place of another one.",
        valueName: "file"))
    var output: String?

    @Option(help: "Only this user's.")
    var user: String?

    @Option(parsing: .upToNextOption, help: "Only those of these platforms.")
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
        throw ValidationError("--output: names something that is no regular file: \(path)")
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
          if let file { try file.write(bytes) } else { try FileHandle.standardOutput.write(contentsOf: bytes) }
        },
        report: { count, share in progress.show(TransferProgress.State(count: count, share: share)) })
      try file?.finish()
      progress.interrupt()
      let seconds = progress.elapsed / .seconds(1)
      Console.error("\(count) exported; \(seconds.text) s, \(Int(Double(count) / max(seconds, 0.001)))/s")
    }
  }
}
