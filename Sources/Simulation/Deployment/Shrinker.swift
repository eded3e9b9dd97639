/// Looks for a smaller run that breaks the same promise: fewer faults, a shorter time, fewer processes and sends.
package struct Shrinker {
  /// A run that breaks a promise.
  package struct Run: Sendable {
    package var profile: Profile
    package let seed: UInt64
    /// The numbers of the faults that are left out.
    package var without: Set<Int> = []
    /// The first promise that it breaks.
    package fileprivate(set) var violation: Accounts.Violation
    /// How many faults it has, those left out included.
    fileprivate var faults: Int

    /// The last lines of its trace up to the violation.
    package var lastLines: [String] {
      var (lines, isOver): ([String], Bool) = ([], false)
      // The trace is used on this thread only.
      let trace = Trace { line in
        guard !isOver else { return }
        lines.append(line)
        if lines.count > 2_000 { lines.removeFirst(1_000) }
        isOver = line.contains("VIOLATION")
      }
      _ = Simulation(profile, seed: seed, without: without, trace: trace).run()
      return lines.suffix(30)
    }

    /// The options of `fanfare-dev simulate` that run it again.
    package var options: String {
      var options = "--profile \(profile.name) --seed \(seed)"
      guard let usual = Profile.known.first(where: { $0.name == profile.name }) else { return options }
      if profile.duration != usual.duration { options += " --until \(profile.duration.components.seconds)" }
      if profile.rate != usual.rate { options += " --sends \(profile.rate)" }
      if profile.workers != usual.workers { options += " --workers \(profile.workers)" }
      if profile.partitions != usual.partitions { options += " --partitions \(profile.partitions)" }
      if profile.users != usual.users { options += " --users \(profile.users)" }
      if profile.faults != usual.faults {
        options += " --faults \(profile.faults.map(\.rawValue).sorted().joined(separator: " "))"
      }
      if !without.isEmpty {
        options += " --without-faults \(without.sorted().map(String.init).joined(separator: ","))"
      }
      return options
    }
  }

  /// How many runs are tried at most.
  static let maximumTries = 300

  /// The smallest run so far.
  package private(set) var smallest: Run
  /// How many runs were tried.
  package private(set) var tries = 0
  private let isOver: () -> Bool

  /// `report`: of the run. `isOver`: whether no further run is to be tried. nil if the run breaks no promise.
  package init?(
    _ profile: Profile, seed: UInt64, without: Set<Int> = [], _ report: Simulation.Report,
    until isOver: @escaping () -> Bool = { false }
  ) {
    guard let violation = report.violations.first else { return nil }
    smallest = Run(profile: profile, seed: seed, without: without, violation: violation, faults: report.injected)
    self.isOver = isOver
  }

  /// Makes the run smaller until nothing can be left out.
  package mutating func shrink() {
    var isSmaller = true
    while isSmaller, mayTry {
      isSmaller = shorten()
      if leaveFaultsOut() { isSmaller = true }
      for size in [\Profile.workers, \.users, \.partitions] where reduce(size) { isSmaller = true }
      if slowDown() { isSmaller = true }
    }
  }

  /// Ends the sends and faults just after the violation, or earlier.
  private mutating func shorten() -> Bool {
    let seconds = smallest.profile.duration.components.seconds
    let end = smallest.violation.time / 1_000_000 + 1
    for shorter in [min(end, seconds), seconds / 2, seconds * 3 / 4, seconds - 1] where (1..<seconds).contains(shorter)
    {
      if attempt({ $0.profile.duration = .seconds(shorter) }) { return true }
    }
    return false
  }

  /// Leaves out as many faults as possible: halves, quarters and so on, at last each alone.
  private mutating func leaveFaultsOut() -> Bool {
    var isSmaller = false
    var size = smallest.faults
    while size > 0 {
      let rest = (0..<smallest.faults).filter { !smallest.without.contains($0) }
      for start in stride(from: 0, to: rest.count, by: size) {
        let some = rest[start..<min(rest.count, start + size)]
        if attempt({ $0.without.formUnion(some) }) { isSmaller = true }
      }
      size /= 2
    }
    return isSmaller
  }

  private mutating func reduce(_ size: WritableKeyPath<Profile, Int>) -> Bool {
    let count = smallest.profile[keyPath: size]
    for fewer in [1, count / 2, count - 1] where (1..<count).contains(fewer) {
      if attempt({ $0.profile[keyPath: size] = fewer }) { return true }
    }
    return false
  }

  /// Halves the rate of the sends, down to one in ten seconds.
  private mutating func slowDown() -> Bool {
    let rate = smallest.profile.rate
    let slower = max(0.1, (rate * 5).rounded() / 10)
    return slower < rate && attempt { $0.profile.rate = slower }
  }

  private var mayTry: Bool { tries < Self.maximumTries && !isOver() }

  /// Tries the changed run. Keeps it if it breaks the same promise.
  private mutating func attempt(_ change: (inout Run) -> Void) -> Bool {
    guard mayTry else { return false }
    var run = smallest
    change(&run)
    tries += 1
    let report = Simulation(run.profile, seed: run.seed, without: run.without).run()
    guard let violation = report.violations.first(where: { $0.kind == smallest.violation.kind }) else { return false }
    (run.violation, run.faults) = (violation, report.injected)
    smallest = run
    return true
  }
}

extension Accounts.Violation {
  /// Its text without ids and numbers.
  var kind: String {
    text.split(separator: " ").filter { !$0.contains(where: \.isNumber) }.joined(separator: " ")
  }
}
