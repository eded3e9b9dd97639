import ArgumentParser
import FanfareCore
import Registry
import Roles

extension RegistrationsCommand {
  /// `fanfare registrations restore`
  struct Restore: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "restore",
      abstract: "Brings back registrations that were removed as dead or as surplus.",
      discussion: """
        For a push service that called living devices dead for a while: select its platform and that time. The \
        registrations come back with their ids, as they were, as long as they are in the quarantine \
        (registry.quarantineDays). One whose id, handle or installation belongs to another registration by now is left \
        alone, and so is one whose user has registry.maximumDevicesPerUser devices: no living device makes room for \
        it. Needs registry.path or registry.postgres.url.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(help: "Only registrations of this platform.")
    var platform: PlatformArgument?

    @Option(
      parsing: .unconditional,
      help: ArgumentHelp("Only registrations removed at this time or later; \(TimeArgument.help).", valueName: "time"))
    var from: TimeArgument

    @Option(
      parsing: .unconditional,
      help: ArgumentHelp("Only registrations removed before this time; \(TimeArgument.help).", valueName: "time"))
    var to: TimeArgument

    @Flag(help: "Print what would be restored, and change nothing.")
    var dryRun = false

    func validate() throws {
      guard from.time < to.time else { throw ValidationError("--from must be before --to") }
    }

    func run() async throws {
      let (hub, store) = try await target.open(common, mustExist: true)
      var page = QuarantinePage(hub: hub, platform: platform?.platform, dropped: from.time..<to.time)
      var (restored, taken, surplus) = (0, 0, 0)
      repeat {
        let step = try await store.restore(page, isTrial: dryRun, at: SystemWallClock().now())
        restored += step.restored
        taken += step.taken
        surplus += step.surplus
        page.after = step.last
      } while page.after != nil
      Console.print(
        "\(restored) registrations \(dryRun ? "would be restored" : "restored"), "
          + "\(taken) left alone because their id, handle or installation is taken, "
          + "\(surplus) because their user has registry.maximumDevicesPerUser devices")
    }
  }
}
