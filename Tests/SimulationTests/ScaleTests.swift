import FanfareCore
import Testing
import Worker

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

  @Test func secondWorkerTakesItsShare() {
    // One worker has too few places at FCM for that.
    let few = Self.small { ($0.workers, $0.cores, $0.sendsPerSecond, $0.duration) = (1, 1, 60_000, .seconds(3)) }
    let many = Self.small { ($0.workers, $0.cores, $0.sendsPerSecond, $0.duration) = (2, 1, 60_000, .seconds(3)) }
    let (one, two) = (ScaleRun(few, seed: 1).run(), ScaleRun(many, seed: 1).run())
    #expect(one.waiting > 1_000)
    #expect(two.delivered > one.delivered * 3 / 2)
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

  @Test func deferredPushesComeBackAfterAnOutage() {
    let profile = Self.small {
      ($0.duration, $0.step) = (.seconds(500), .milliseconds(200))
      $0.events = [.init(after: .seconds(5), .outage(.apns, .seconds(120)))]
    }
    let report = ScaleRun(profile, seed: 1).run()
    #expect(report.violations.isEmpty && report.waiting < 1_000)
    #expect(report.lines.contains { $0.name == "all deferred pushes are back" })
    // The other services notice nothing.
    #expect(report.latency[.fcm]?.quantile(0.999) ?? 0 < .seconds(2))
    #expect(report.latency[.apns]?.quantile(0.999) ?? 0 > .seconds(60))
  }

  @Test func quotaIsKept() {
    // Half of what the pushes need.
    let profile = Self.small { $0.services[1].perMinute = 27_000 }
    let report = ScaleRun(profile, seed: 1).run()
    #expect(report.violations.isEmpty)
    let pushed = report.latency[.fcm]?.total ?? 0
    #expect(pushed > 2_000 && pushed <= 4_500)
  }

  @Test func manyWorkersUseTheirQuota() {
    let profile = Self.small {
      ($0.workers, $0.partitions, $0.sendsPerSecond) = (300, 300, 30_000)
      ($0.duration, $0.step) = (.seconds(60), .milliseconds(100))
      // The pushes need nine tenths of it.
      $0.services[1].perMinute = 900_000
    }
    let report = ScaleRun(profile, seed: 1).run()
    #expect(report.violations.isEmpty)
    #expect(report.latency[.fcm]?.quantile(0.99) ?? .max < .seconds(5))
    #expect(report.latency[.apns]?.quantile(0.99) ?? .max < .seconds(1))
  }

  @Test(arguments: [true, false])
  func restartsMovePartitionsOnlyWithoutLastingNames(isStatic: Bool) {
    let profile = Self.small {
      ($0.duration, $0.isStatic) = (.seconds(180), isStatic)
      $0.events = [.init(after: .seconds(1), .deploy(atOnce: 2))]
    }
    let report = ScaleRun(profile, seed: 1).run()
    #expect(report.violations.isEmpty && report.repeated == 0)
    #expect(report.lines.contains { $0.name == "6 workers restarted" && $0.note == "all" })
    #expect(report.lines.contains { $0.name == "rebalances" && ($0.value == "0") == isStatic })
  }

  @Test func largeBroadcastsHaveMoreSegments() {
    let broadcasts = WorkerConfiguration.Broadcasts()
    let pages = [1, 100, 1_000, 1_600, 25_000, 1_000_000]
    #expect(pages.map { broadcasts.segments(pages: $0) } == [1, 64, 64, 100, 1_024, 1_024])
  }

  /// The same size with the worker's own code and as flows.
  @Test func flowsTakeAsLongAsTheWorkersCode() throws {
    var real = Profile(name: "small", rate: 200)
    (real.workers, real.partitions, real.users, real.devicesPerUser) = (4, 16, 2_000, 1...1)
    real.duration = .seconds(20)
    let expected = try #require(Simulation(real, seed: 1).run().latency.first)
    var flows = try #require(ScaleProfile.all.first { $0.name == "calibration" })
    (flows.workers, flows.partitions, flows.sendsPerSecond, flows.duration) = (4, 16, 200, .seconds(20))
    let report = ScaleRun(flows, seed: 1).run()
    let found = try #require(report.latency[.apns]?.quantile(0.5))
    #expect(abs(Duration.microseconds(found) / expected - 1) < 0.2)
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
