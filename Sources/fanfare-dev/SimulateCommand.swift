import ArgumentParser
import Foundation
import Roles
import Simulation

/// `fanfare-dev simulate`
struct SimulateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Runs a whole deployment in virtual time, with faults, and checks what it promises.",
    discussion: """
      The workers are the product's code; Kafka, the registry and the push services are models. The same seed gives the \
      same history, byte for byte. It fails when a promise is broken, and names profile and seed.
      """)

  private static let profiles = Profile.known.map(\.name).joined(separator: ", ")
  private static let kinds = Profile.Fault.allCases.map(\.rawValue).joined(separator: ", ")
  private static let scales = ScaleProfile.all.map(\.name).joined(separator: ", ")

  @Option(help: ArgumentHelp("The first seed; without it a random one.", valueName: "number")) var seed: UInt64?
  @Option(help: ArgumentHelp("How many seeds are run, one after another.", valueName: "number")) var seeds: UInt64 = 1
  @Option(
    help: ArgumentHelp(
      "How long seeds are run, instead of their number; ends with a whole round.", valueName: "minutes"))
  var minutes: Int?
  @Option(
    help: ArgumentHelp(
      "The profile: \(Self.profiles); without it all but the last \(Profile.rough.count).", valueName: "name"))
  var profile: String?
  @Option(
    help: ArgumentHelp(
      "A deployment of any size, as flows instead of single pushes: \(Self.scales); or costs, for the figures behind it.",
      valueName: "name"))
  var scale: String?
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
  @Option(help: ArgumentHelp("The workers that rolling-deploy restarts at a time.", valueName: "number"))
  var atOnce: Int?
  @Option(help: ArgumentHelp("The devices of the broadcast of stadium, instead of its own.", valueName: "number"))
  var devices: Int?
  @Flag(help: "Workers of --scale have names that survive a restart (worker.instance).") var `static` = false
  @Option(help: ArgumentHelp("The users of a profile, instead of its own.", valueName: "number")) var users: Int?
  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp("The faults of a profile, instead of its own: \(Self.kinds).", valueName: "kind"))
  var faults: [String] = []
  @Flag(help: "Prints everything that happens.") var trace = false
  @Option(help: ArgumentHelp("Faults to leave out, by their numbers from 0, with commas.", valueName: "numbers"))
  var withoutFaults: String?
  @Flag(help: "Looks for a smaller run for each one that breaks a promise, up to five minutes.") var shrink = false
  @Flag(help: "Ends with the first run that breaks a promise.") var stopAtFirst = false
  @Flag(help: "Prints how often each step of a worker, and each fault in each phase, was reached; runs all profiles.")
  var coverage = false
  @Option(help: ArgumentHelp("Writes a page that replays the run of one seed of one profile.", valueName: "file"))
  var page: String?

  func validate() throws {
    guard profile == nil || Profile.known.contains(where: { $0.name == profile }) else {
      throw ValidationError("--profile: must be one of \(Self.profiles)")
    }
    guard scale == nil || scale == "costs" || ScaleProfile.all.contains(where: { $0.name == scale }) else {
      throw ValidationError("--scale: must be one of \(Self.scales), costs")
    }
    guard scale == nil || (profile == nil && minutes == nil && seeds == 1) else {
      throw ValidationError("--scale: not together with --profile, --minutes or --seeds")
    }
    guard scale == nil || (users == nil && faults.isEmpty && !stopAtFirst && !coverage) else {
      throw ValidationError("--scale: not together with --users, --faults, --stop-at-first or --coverage")
    }
    guard scale != nil || (atOnce == nil && devices == nil && !`static`) else {
      throw ValidationError("--at-once, --devices, --static: only with --scale")
    }
    guard minutes == nil || seeds == 1 else { throw ValidationError("--minutes: not together with --seeds") }
    guard (1...10_000).contains(minutes ?? 1) else { throw ValidationError("--minutes: must be from 1 to 10000") }
    guard (1...86_400).contains(until ?? 1) else { throw ValidationError("--until: must be from 1 to 86400 seconds") }
    let most = scale == nil ? (sends: 10_000.0, size: 1_000) : (sends: 100_000_000.0, size: 100_000)
    guard (0.001...most.sends).contains(sends ?? 1) else {
      throw ValidationError("--sends: must be from 0.001 to \(Int(most.sends))")
    }
    guard (1...most.size).contains(workers ?? 1) else {
      throw ValidationError("--workers: must be from 1 to \(most.size)")
    }
    guard (1...most.size).contains(partitions ?? 1) else {
      throw ValidationError("--partitions: must be from 1 to \(most.size)")
    }
    guard (1...1_000_000).contains(users ?? 1) else { throw ValidationError("--users: must be from 1 to 1000000") }
    guard (1...1_000_000_000).contains(devices ?? 1) else {
      throw ValidationError("--devices: must be from 1 to 1000000000")
    }
    guard faults.allSatisfy({ Profile.Fault(rawValue: $0) != nil }) else {
      throw ValidationError("--faults: must be some of \(Self.kinds)")
    }
    guard (1...1_000).contains(atOnce ?? 1) else { throw ValidationError("--at-once: must be from 1 to 1000") }
    guard missing.count == withoutFaults?.split(separator: ",").count ?? 0 else {
      throw ValidationError("--without-faults: must be different numbers with commas")
    }
    guard (1...1_000_000).contains(seeds) else { throw ValidationError("--seeds: must be from 1 to 1000000") }
    guard page == nil || (profile != nil && seeds == 1 && minutes == nil) else {
      throw ValidationError("--page: needs one --profile, and one seed")
    }
    guard seed ?? 0 < 1 << 63 else { throw ValidationError("--seed: must be less than 2^63") }
  }

  func run() async throws {
    if let scale { return try run(scale: scale) }
    try Self.restartWithFixedHashes()
    let profiles = (profile == nil && !coverage ? Profile.all : Profile.known)
      .filter { profile == nil || $0.name == profile }.map(adapted)
    let first = seed ?? .random(in: 0..<1 << 32)
    let end = minutes.map { ContinuousClock.now + .seconds(60 * $0) }
    var (seed, sum) = (first, SimulationSum())
    let isOnly = seeds == 1 && minutes == nil && profiles.count == 1
    runs: repeat {
      for profile in profiles {
        let report = try run(profile, seed: seed, isOnly: isOnly)
        sum.add(report)
        // Of many failures the first one alone is shrunk, unless it is asked for.
        if shrink || (!stopAtFirst && sum.failed == 1) { shrink(profile, seed: seed, report) }
        if sum.runs > 1, Console.isErrorTerminal { Console.overwriteError(sum.progress) }
        if stopAtFirst, sum.violations > 0 || end.map({ .now >= $0 }) == true { break runs }
      }
      seed += 1
    } while end.map { .now < $0 } ?? (seed < first + seeds)
    if !isOnly {
      if Console.isErrorTerminal { Console.overwriteError("") }
      print(sum)
    }
    if coverage { print("\n\(CoverageTable(coverage: sum.coverage))") }
    if sum.violations > 0 { throw ExitCode.failure }
  }

  /// The numbers of the faults that are left out.
  private var missing: Set<Int> { Set((withoutFaults ?? "").split(separator: ",").compactMap { Int($0) }) }

  /// Prints a smaller run that breaks the same promise, and its end.
  private func shrink(_ profile: Profile, seed: UInt64, _ report: Simulation.Report) {
    let end = ContinuousClock.now + .seconds(shrink ? 300 : 20)
    guard var shrinker = Shrinker(profile, seed: seed, without: missing, report, until: { .now >= end }) else { return }
    shrinker.shrink()
    let run = shrinker.smallest
    print("  smaller, after \(shrinker.tries) runs: fanfare-dev simulate \(run.options)")
    for line in run.lastLines { print("    \(line)") }
  }

  /// The profile with the sizes that were asked for.
  private func adapted(_ profile: Profile) -> Profile {
    var profile = profile
    if let until { profile.duration = .seconds(until) }
    if let sends { profile.rate = sends }
    if let workers { profile.workers = workers }
    if let partitions { profile.partitions = partitions }
    if let users { profile.users = users }
    if !faults.isEmpty { profile.faults = Set(faults.compactMap(Profile.Fault.init)) }
    return profile
  }

  private func run(scale name: String) throws {
    guard var profile = ScaleProfile.all.first(where: { $0.name == name }) else { return print(ScaleTable.costs) }
    if let until { profile.duration = .seconds(until) }
    if let sends { profile.sendsPerSecond = sends }
    if let workers { profile.workers = workers }
    if let partitions { profile.partitions = partitions }
    profile.events = profile.events.map { $0.resized(atOnce: atOnce, devices: devices) }
    profile.isStatic = `static`
    let (start, seed) = (ContinuousClock.now, seed ?? 1)
    let trace = trace ? Trace { print($0) } : Trace()
    let report = ScaleRun(profile, seed: seed, trace: trace).run()
    print("\(profile.name): \(profile.about)\n\n\(ScaleTable(report: report))")
    print("seed \(seed), \(profile.duration) virtual in \((ContinuousClock.now - start).formatted())")
    for violation in report.violations { print("  \(violation)") }
    if !report.violations.isEmpty { throw ExitCode.failure }
  }

  /// Runs one seed. Prints its line if it is the only one, or fails.
  private func run(_ profile: Profile, seed: UInt64, isOnly: Bool) throws -> Simulation.Report {
    let start = ContinuousClock.now
    let recording = page == nil ? nil : Recording()
    let trace = Trace(recording: recording, write: trace ? { print($0) } : nil)
    let report = Simulation(profile, seed: seed, without: missing, trace: trace).run()
    let counts = report.counts
    guard isOnly || !report.violations.isEmpty else { return report }
    if Console.isErrorTerminal { Console.overwriteError("") }
    print(
      """
      \(profile.name), seed \(seed): \(counts.accepted) sends, \(counts.pushes) pushes (\(counts.repeated) repeated), \
      \(counts.deferred) deferred, \(report.faults.values.reduce(0, +)) faults, \(counts.checks) checks, \
      \(report.virtualTime.components.seconds) s virtual in \((ContinuousClock.now - start).formatted()), \
      \(report.steps) steps, \(report.latency.map { "\(Int($0 / .milliseconds(1)))" }.joined(separator: "/")) ms \
      (p50/p99/p99.9), digest \(String(report.digest, radix: 16))
      """)
    for violation in report.violations { print("  \(violation)") }
    if let page, let recording {
      try Data(TracePage.html(of: recording, report, profile, seed: seed)).write(to: URL(filePath: page))
    }
    return report
  }

  /// Starts the program again with hash values that are the same in every process: dictionaries then have the same order
  /// in every run.
  private static func restartWithFixedHashes() throws {
    let name = "SWIFT_DETERMINISTIC_HASHING"
    guard ProcessInfo.processInfo.environment[name] != "1" else { return }
    let error = restartProgram(with: name, "1")
    throw ValidationError("the program cannot start itself again: error \(error)")
  }
}
