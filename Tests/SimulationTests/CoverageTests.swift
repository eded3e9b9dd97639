import FanfareCore
import Testing
import Worker

@testable import Simulation

struct CoverageTests {
  private func coverage(of name: String) throws -> Coverage {
    var profile = try #require(Profile.all.first { $0.name == name })
    profile.duration = .seconds(20)
    return Simulation(profile, seed: 1).run().coverage
  }

  @Test func calmRunReachesDeliveryAndNothingOfAnOutage() throws {
    let calm = try coverage(of: "calm")
    #expect(calm.steps[.outcome(.accepted, .finish(.delivered))] ?? 0 > 0)
    #expect(calm.steps[.device(from: .queued, to: .inFlight)] ?? 0 > 0)
    #expect(calm.steps[.device(from: .inFlight, to: .deferred)] == nil)
    #expect(calm.steps.keys.allSatisfy { if case .outcome(let verdict, _) = $0 { verdict == .accepted } else { true } })
    #expect(calm.situations.isEmpty)
    let outcomes = try #require(calm.lists.first { $0.name == "outcomes" })
    #expect(outcomes.reached == 1 && outcomes.missed.count == WorkerStep.outcomes.count - 1)
  }

  @Test func runWithOutagesReachesDeferral() throws {
    let outages = try coverage(of: "services")
    #expect(outages.steps[.device(from: .inFlight, to: .deferred)] ?? 0 > 0)
    #expect(outages.steps[.outcome(.retryLater, .wait)] ?? 0 > 0)
    #expect(outages.situations.keys.contains { $0.place == .device(.inFlight) })
    #expect(!outages.situations.keys.contains { $0.fault == .crash })
  }

  @Test func faultMeetsOnlyThePhasesThatSomethingIsIn() {
    let log = StepLog()
    #expect(log.add(.device(from: nil, to: .queued)))
    #expect(log.add(.device(from: .queued, to: .inFlight)))
    log.meet(.crash)
    #expect(log.add(.device(from: .inFlight, to: .done)))
    log.meet(.freeze)
    #expect(log.coverage.situations == [Coverage.Situation(.crash, in: .device(.inFlight)): 1])
  }

  @Test func stepThatNoTableHasIsFound() {
    #expect(!StepLog().add(.device(from: .done, to: .queued)))
    #expect(!StepLog().add(.outcome(.accepted, .again)))
  }

  @Test func tablesHaveEachStepOnce() {
    let steps = (WorkerStep.transitions + WorkerStep.outcomes).map(\.step)
    #expect(Set(steps).count == steps.count)
  }
}
