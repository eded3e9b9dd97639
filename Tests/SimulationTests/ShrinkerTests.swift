import FanfareCore
import Testing

@testable import Simulation

struct ShrinkerTests {
  /// A small deployment, in which a frozen worker counts as a broken promise.
  private var profile: Profile {
    Profile("restarts", faults: [.freeze, .restart, .addWorker]) { profile in
      (profile.duration, profile.meanTimeBetweenFaults) = (.seconds(8), .milliseconds(700))
      (profile.workers, profile.partitions, profile.users, profile.rate) = (2, 2, 2, 1)
      profile.planted = .freeze
    }
  }

  @Test func onlyTheFaultThatMattersIsLeft() throws {
    let report = Simulation(profile, seed: 1).run()
    var shrinker = try #require(Shrinker(profile, seed: 1, report))
    shrinker.shrink()
    let run = shrinker.smallest
    #expect(shrinker.tries < Shrinker.maximumTries)
    let again = Simulation(run.profile, seed: 1, without: run.without).run()
    #expect(report.injected > 2 && again.faults == [.freeze: 1])
    #expect(again.violations.first == run.violation)
    #expect(run.profile.workers == 1 && run.profile.users == 1 && run.profile.partitions == 1)
    #expect(run.options.hasPrefix("--profile restarts --seed 1 --until "), "\(run.options)")
  }

  @Test func faultsThatAreLeftOutDoNotMoveTheOthers() {
    let whole = Simulation(profile, seed: 2).run()
    let rest = Simulation(profile, seed: 2, without: [0]).run()
    #expect(whole.injected == rest.injected)
    #expect(whole.faults.values.reduce(0, +) == rest.faults.values.reduce(0, +) + 1)
  }

  @Test func runThatBreaksNoPromiseIsNotShrunk() {
    let calm = Profile("calm") { ($0.duration, $0.workers, $0.partitions) = (.seconds(2), 1, 1) }
    #expect(Shrinker(calm, seed: 1, Simulation(calm, seed: 1).run()) == nil)
  }
}
