import ArgumentParser
import Roles

/// `fanfare-dev simulator`
struct SimulatorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulator",
    abstract: "Plays APNs, FCM and WNS over real TLS, with faults on demand.",
    discussion: """
      Makes the keys and secrets of an app (once) in simulator.directory and writes there where it listens; a hub with \
      hub.NAME.simulator set to the same directory pushes to it. Its admin address, which it prints, shows what every device received.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    let (runtime, workshop) = try await common.workshop("simulator")
    try await runtime.run(try SimulatorRole.services(runtime, workshop.simulator))
  }
}
