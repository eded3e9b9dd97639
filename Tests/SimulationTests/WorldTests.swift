import FanfareCore
import Testing

@testable import Simulation

struct WorldTests {
  @Test func eventsHappenInTheOrderOfTheirTimes() {
    let world = World(seed: 1, trace: Trace())
    let log = Log()
    world.after(.milliseconds(2)) { log.note("b", at: world.now) }
    world.after(.milliseconds(1)) { log.note("a", at: world.now) }
    world.after(.milliseconds(2)) { log.note("c", at: world.now) }
    world.after(.milliseconds(9)) { log.note("late", at: world.now) }
    world.run(until: .milliseconds(5))
    #expect(log.lines == ["1000 a", "2000 b", "2000 c"])
    #expect(world.now == 5_000)
  }

  /// Many runs follow each other in one process.
  @Test func runLeavesNothingBehind() {
    let profile = Profile("deaths", faults: [.crash, .freeze, .restart]) { profile in
      (profile.duration, profile.meanTimeBetweenFaults, profile.rate) = (.seconds(5), .seconds(1), 2)
    }
    weak var left: Trace?
    do {
      let trace = Trace()
      left = trace
      _ = Simulation(profile, seed: 1, trace: trace).run()
    }
    #expect(left == nil)
  }

  @Test func tasksSleepInVirtualTime() {
    let world = World(seed: 1, trace: Trace())
    let process = SimulatedProcess("p", in: world)
    let log = Log()
    process.start {
      do {
        try await process.sleep(for: .seconds(3_600))
        log.note("\(process.uptime()) ms", at: world.now)
      } catch {
        log.note("cancelled", at: world.now)
      }
    }
    world.run(until: .seconds(7_200))
    #expect(log.lines == ["3600000000 3600000 ms"])
  }

  @Test func frozenProcessGoesOnWhereItWas() {
    let world = World(seed: 1, trace: Trace())
    let process = SimulatedProcess("p", in: world)
    let log = Log()
    process.start {
      for _ in 0..<2 {
        do { try await process.sleep(for: .seconds(1)) } catch { return }
        log.note("awake", at: world.now)
      }
    }
    world.after(.milliseconds(500)) { process.freeze() }
    world.after(.seconds(10)) { process.thaw() }
    world.run(until: .seconds(20))
    #expect(log.lines == ["10000000 awake", "11000000 awake"])
  }

  @Test func deadProcessDoesNothingMore() {
    let world = World(seed: 1, trace: Trace())
    let process = SimulatedProcess("p", in: world)
    let log = Log()
    process.start {
      do { try await process.sleep(for: .seconds(1)) } catch { return log.note("cancelled", at: world.now) }
      log.note("awake", at: world.now)
    }
    process.after(.seconds(2)) { log.note("event", at: world.now) }
    world.after(.milliseconds(500)) { process.kill() }
    world.run(until: .seconds(20))
    #expect(log.lines == ["500000 cancelled"])
  }

  /// What has happened, with the time of each.
  /// `@unchecked Sendable`: used on the world's thread.
  private final class Log: @unchecked Sendable {
    private(set) var lines: [String] = []

    func note(_ text: String, at time: World.Time) { lines.append("\(time) \(text)") }
  }
}
