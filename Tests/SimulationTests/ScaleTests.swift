import FanfareCore
import Testing

@testable import Simulation

struct ScaleTests {
  /// A deployment that a test can afford: seconds, few workers, long steps.
  private static func small(_ change: (inout ScaleProfile) -> Void = { _ in }) -> ScaleProfile {
    var profile = ScaleProfile("small", "")
    (profile.workers, profile.partitions, profile.sendsPerSecond) = (6, 16, 2_000)
    (profile.frontEnds, profile.brokers, profile.registries) = (2, 1, 1)
    (profile.duration, profile.step) = (.seconds(10), .milliseconds(50))
    change(&profile)
    return profile
  }

  @Test func sameSeedHasTheSameHistory() {
    let profile = Self.small()
    let first = ScaleRun(profile, seed: 7).run()
    #expect(first.digest == ScaleRun(profile, seed: 7).run().digest)
    #expect(first.digest != ScaleRun(profile, seed: 8).run().digest)
  }

  @Test func sendsArePushedOrWait() {
    let report = ScaleRun(Self.small(), seed: 1).run()
    #expect(report.violations.isEmpty)
    #expect(report.delivered > 19_000 && report.waiting < 200 && report.repeated == 0)
  }

  @Test func twiceAsManyWorkersPushNoLess() {
    // One worker has too few processors for that.
    let few = Self.small { ($0.workers, $0.cores, $0.sendsPerSecond, $0.duration) = (1, 1, 60_000, .seconds(3)) }
    let many = Self.small { ($0.workers, $0.cores, $0.sendsPerSecond, $0.duration) = (2, 1, 60_000, .seconds(3)) }
    let (one, two) = (ScaleRun(few, seed: 1).run(), ScaleRun(many, seed: 1).run())
    #expect(one.waiting > 1_000 && one.uses.first?.peak ?? 0 > 0.95)
    #expect(two.delivered >= one.delivered)
  }

  @Test func deadWorkersPartitionsMoveAfterTheirSession() {
    let profile = Self.small {
      $0.duration = .seconds(40)
      $0.events = [.init(after: .seconds(5), .deaths(share: 0.34))]
    }
    let report = ScaleRun(profile, seed: 1).run()
    #expect(report.violations.isEmpty && report.repeated > 0 && report.waiting < 200)
    #expect(report.lines.contains { $0.name == "partitions that changed hands" })
  }

  @Test func broadcastReachesAllItsDevices() {
    let profile = Self.small {
      $0.duration = .seconds(30)
      $0.events = [.init(after: .seconds(1), .broadcast(devices: 400_000))]
    }
    let report = ScaleRun(profile, seed: 1).run()
    #expect(report.violations.isEmpty)
    #expect(report.lines.contains { $0.name.hasPrefix("broadcast") && $0.note.hasSuffix("devices/s") })
  }

  @Test func quantilesAreExactToThreePercent() {
    var histogram = LatencyHistogram()
    for time in 1...100_000 { histogram.add(World.Time(time)) }
    for share in [0.5, 0.99, 0.999] {
      let exact = 100_000 * share
      #expect(abs(Double(histogram.quantile(share)) - exact) <= exact * 0.032)
    }
  }

  @Test func cohortsComeOutInTheirOrder() {
    var queue = CohortQueue()
    queue.append(Cohort(born: 1, count: 3))
    queue.append(Cohort(born: 2, count: 2))
    queue.append(Cohort(born: 2, count: 2))
    #expect(queue.pop(2) == Cohort(born: 1, count: 2))
    queue.putBack(Cohort(born: 0, count: 1))
    #expect(queue.count == 6 && queue.oldest == 0)
    #expect([queue.pop(9), queue.pop(9), queue.pop(9)].map { $0?.count } == [1, 1, 4])
    #expect(queue.pop(9) == nil)
  }
}
