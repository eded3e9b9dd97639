import ArgumentParser
import Foundation
import Simulation

/// `fanfare-dev simulate`
struct SimulateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Runs a whole deployment in virtual time, with faults, and checks what it promises.",
    discussion: """
      The workers are the product's code; Kafka, the registry and the push services are models. The same seed gives the \
      same history. It fails when a promise is broken, and names the seed.
      """)

  private static let profiles = Profile.all.map(\.name).joined(separator: ", ")

  @Option(help: ArgumentHelp("The first seed.", valueName: "number")) var seed: UInt64 = 1
  @Option(help: ArgumentHelp("How many seeds are run, one after another.", valueName: "number")) var seeds: UInt64 = 1
  @Option(help: ArgumentHelp("The profile: \(Self.profiles).", valueName: "name"))
  var profile: String = "everything"
  @Option(
    help: ArgumentHelp(
      "How long sends are posted and faults happen, instead of the profile's time.", valueName: "seconds"))
  var until: Int?
  @Option(help: ArgumentHelp("The sends in a second, instead of the profile's.", valueName: "number"))
  var sends: Double?
  @Option(help: ArgumentHelp("The workers at the beginning, instead of the profile's.", valueName: "number"))
  var workers: Int?
  @Option(help: ArgumentHelp("The partitions of each topic, instead of the profile's.", valueName: "number"))
  var partitions: Int?
  @Flag(help: "Prints everything that happens.") var trace = false

  func validate() throws {
    guard Profile.all.contains(where: { $0.name == profile }) else {
      throw ValidationError("--profile: must be one of \(Self.profiles)")
    }
    guard (1...86_400).contains(until ?? 1) else { throw ValidationError("--until: must be from 1 to 86400 seconds") }
    guard (0.001...10_000).contains(sends ?? 1) else { throw ValidationError("--sends: must be from 0.001 to 10000") }
    guard (1...1_000).contains(workers ?? 1) else { throw ValidationError("--workers: must be from 1 to 1000") }
    guard (1...1_000).contains(partitions ?? 1) else { throw ValidationError("--partitions: must be from 1 to 1000") }
    guard seeds >= 1, seed <= .max - seeds else {
      throw ValidationError("--seeds: must be 1 or more, and the last seed less than 2^64")
    }
  }

  func run() async throws {
    try Self.restartWithFixedHashes()
    guard var profile = Profile.all.first(where: { $0.name == profile }) else { return }
    if let until { profile.duration = .seconds(until) }
    if let sends { profile.rate = sends }
    if let workers { profile.workers = workers }
    if let partitions { profile.partitions = partitions }
    var hasFailed = false
    for seed in seed..<seed + seeds {
      let start = ContinuousClock.now
      let trace = trace ? Trace { print($0) } : Trace()
      let report = Simulation(profile, seed: seed, trace: trace).run()
      let counts = report.counts
      print(
        """
        seed \(seed): \(counts.accepted) sends, \(counts.pushes) pushes (\(counts.repeated) repeated), \
        \(counts.deferred) deferred, \(report.faults.values.reduce(0, +)) faults, \(counts.checks) checks, \
        \(report.virtualTime.components.seconds) s virtual in \((ContinuousClock.now - start).formatted()), \
        \(report.steps) steps, digest \(String(report.digest, radix: 16))
        """)
      for violation in report.violations { print("  \(violation)") }
      hasFailed = hasFailed || !report.violations.isEmpty
    }
    if hasFailed { throw ExitCode.failure }
  }

  /// Starts the program again with hash values that are the same in every process: dictionaries then have the same order
  /// in every run.
  private static func restartWithFixedHashes() throws {
    let name = "SWIFT_DETERMINISTIC_HASHING"
    guard ProcessInfo.processInfo.environment[name] != "1" else { return }
    let process = Process()
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = Array(CommandLine.arguments.dropFirst())
    process.environment = ProcessInfo.processInfo.environment.merging([name: "1"]) { $1 }
    try process.run()
    process.waitUntilExit()
    throw ExitCode(process.terminationStatus)
  }
}
