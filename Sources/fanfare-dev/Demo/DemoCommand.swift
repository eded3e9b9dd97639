import ArgumentParser
import Roles

/// `fanfare-dev demo`
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Everything in one process, with an embedded Kafka and simulated push services.",
    discussion: """
      Registers users with iPhones, Androids and Windows machines through the HTTP API, sends to some of them, shows each notification as \
      it arrives on its device, then runs a stream of sends and stays up for you. Its Kafka, databases and keys are its own and are gone \
      afterwards; no configuration is read.
      """)

  @Flag(
    help:
      "Run the stream of sends, print what came of it as one line of JSON, and exit: 0 only if none was refused or lost."
  )
  var once = false

  @Option(help: ArgumentHelp("How many sends the stream has, 1 to 1000000.", valueName: "count"))
  var sends = 20_000

  @Option(
    help: ArgumentHelp(
      """
      Instead: one broadcast to so many devices, 2001 to 1000000, with its progress and the commands that pause, resume and cancel \
      it. Its worker is a process of its own that you may kill: another one takes over. With --once all that is done for you, and \
      pushed slowly enough for it.
      """, valueName: "devices"))
  var broadcast: Int?

  @Option(help: ArgumentHelp("The port of the HTTP API; 0 lets the kernel choose.", valueName: "port"))
  var port = 0

  func validate() throws {
    guard (1...1_000_000).contains(sends) else { throw ValidationError("--sends must be 1 to 1000000") }
    guard broadcast.map((2001...1_000_000).contains) ?? true else {
      throw ValidationError("--broadcast must be 2001 to 1000000")
    }
    guard (0...65535).contains(port) else { throw ValidationError("--port must be 0 to 65535") }
  }

  func run() async throws {
    let demo = Demo(show: broadcast.map { .broadcast(devices: $0) } ?? .stream(sends: sends), port: port, isOnce: once)
    let isComplete: Bool
    do { isComplete = try await demo.run() } catch let error as SettingsError where error.key == "api.port" {
      throw SettingsError("--port", error.expectation)
    }
    if !isComplete { throw ExitCode.failure }
  }
}
