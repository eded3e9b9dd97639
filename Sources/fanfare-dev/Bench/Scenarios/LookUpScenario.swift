import FanfareCore
import Registry
import Roles

/// A worker's look-up of a batch's devices in PostgreSQL, with few and with very many registrations.
struct LookUpScenario: BenchScenario {
  let name = "look-up"

  /// Sends per batch, each to one user.
  private static let batch = 500
  /// Batches at the same time.
  private static let askers = 2

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    guard let database = try BenchDatabase(rig) else {
      var report = ScenarioReport(scenario: name, unit: "tags", sink: "–")
      report.notes.append("not measured: PostgreSQL is not installed")
      return [report]
    }
    let counts = rig.options.isQuick ? [2000, 20_000] : Array(Set(rig.options.registrations)).sorted()
    return try await database.withRegistries(of: counts.map { Crowd(devices: $0) }) { filled in
      var reports: [ScenarioReport] = []
      let tags = rig.options.scaled(300_000, floor: 2000)
      for registry in filled { try await warm(registry) }
      for registry in filled {
        let base = registry.crowd.devices == filled[0].crowd.devices ? nil : filled[0]
        let pairs = try await bench.pairs {
          guard let base else { return nil }
          return try await ask(base, tags: tags)
        } product: {
          try await ask(registry, tags: tags)
        }
        var report = ScenarioReport(
          scenario: "\(name), \(registry.crowd.devices) registrations", unit: "tags", sink: "PostgreSQL", pairs: pairs,
          // The cost may grow by 30 %.
          goals: [.rate(60_000)] + (base == nil ? [] : [.share(1 / 1.3)]))
        if let base { report.notes.append("the ceiling is the same with \(base.crowd.devices) registrations") }
        report.notes.append("loaded in \((registry.loading / .seconds(1)).text) s")
        reports.append(report)
      }
      return reports
    }
  }

  /// Warms the cache: looks up as many users as the crowd has, at most a few million.
  private func warm(_ filled: BenchDatabase.Filled) async throws {
    _ = try await ask(filled, tags: min(filled.crowd.users, 2_000_000))
  }

  /// Looks up random users and checks the number of devices.
  private func ask(_ filled: BenchDatabase.Filled, tags: Int) async throws -> Measurement {
    let expected = filled.crowd.devicesByUser()
    let batches = tags / Self.batch / Self.askers
    let (start, before) = (ContinuousClock.now, try ProcessUsage())
    try await withThrowingTaskGroup { group in
      for asker in 0..<Self.askers {
        group.addTask {
          var random = SplitMix64(seed: UInt64(asker) &* 0x9E37_79B9 &+ UInt64(tags))
          for _ in 0..<batches {
            let users = (0..<Self.batch).map { _ in Int.random(in: 0..<filled.crowd.users, using: &random) }
            let answers = try await filled.registry.resolve(
              users.map { AudienceQuery(hub: .default, audience: .user(Population.user($0)), platforms: .all) })
            for (user, answer) in zip(users, answers) where answer.count != Int(expected[user]) {
              throw BenchError("user \(user) has \(expected[user]) devices, and \(answer.count) were found")
            }
          }
        }
      }
      try await group.waitForAll()
    }
    let (end, after) = (ContinuousClock.now, try ProcessUsage())
    return Measurement(
      count: batches * Self.askers * Self.batch, seconds: (end - start) / .seconds(1), from: before, to: after)
  }
}
