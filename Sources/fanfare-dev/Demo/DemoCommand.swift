import ArgumentParser
import Roles
import SettingsTable

/// `fanfare-dev demo`
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Everything in one process, with an embedded Kafka and simulated push services.",
    discussion: """
      Registers users with iPhones, Androids and Windows machines through the HTTP API, sends to some of them, shows \
      each notification as it arrives, runs a stream of sends, and stays up for you. Kafka, databases and keys are \
      temporary; no configuration is read.
      """)

  @Flag(
    help:
      "Run the stream of sends, print the result as one line of JSON, and exit: status 0 only if nothing was lost."
  )
  var once = false

  @Option(
    help: ArgumentHelp("Sends of the stream, 1 to 1000000; default: 20000, with --azure 1000.", valueName: "count"))
  var sends: Int?

  @Option(
    help: ArgumentHelp(
      """
      Instead, run one broadcast to this many devices, 2001 to 1000000, with its progress and the commands that pause, \
      resume and cancel it. Its worker is another process, and the demo replaces it when you kill it. With --once the \
      demo pauses, kills and resumes by itself, and pushes slowly enough for that.
      """, valueName: "devices"))
  var broadcast: Int?

  @Option(
    help: ArgumentHelp(
      """
      Instead, make this many registrations, 1 to 1000000, and then sends in the protocol of Azure Notification Hubs, \
      and compare audit, ledger and devices. Needs the program fanfare beside this one.
      """, valueName: "registrations"))
  var azure: Int?

  @Option(help: ArgumentHelp("The port of the HTTP API; 0 lets the kernel choose.", valueName: "port"))
  var port = 0

  func validate() throws {
    guard sends.map((1...1_000_000).contains) ?? true else { throw ValidationError("--sends must be 1 to 1000000") }
    guard broadcast.map((2001...1_000_000).contains) ?? true else {
      throw ValidationError("--broadcast must be 2001 to 1000000")
    }
    guard azure.map((1...1_000_000).contains) ?? true else { throw ValidationError("--azure must be 1 to 1000000") }
    guard azure == nil || broadcast == nil else { throw ValidationError("give either --azure or --broadcast") }
    guard (0...65535).contains(port) else { throw ValidationError("--port must be 0 to 65535") }
  }

  func run() async throws {
    let show: Demo.Show =
      if let broadcast {
        .broadcast(devices: broadcast)
      } else if let azure {
        .azure(AzureLoad(registrations: azure, sends: sends ?? 1000))
      } else {
        .stream(sends: sends ?? 20_000)
      }
    let demo = Demo(show: show, port: port, isOnce: once)
    let isComplete: Bool
    do { isComplete = try await demo.run() } catch let error as SettingsError where error.key == "api.port" {
      throw SettingsError("--port", error.expectation)
    }
    if !isComplete { throw ExitCode.failure }
  }
}
