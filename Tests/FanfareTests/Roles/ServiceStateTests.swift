import FanfareCore
import Testing

@testable import Operations
@testable import Roles

/// The messages that a service manager gets about a role.
struct ServiceStateTests {
  private let alive = HealthReport(checks: [.init(name: "event loops", problems: [])])
  private let stuck = HealthReport(checks: [.init(name: "event loops", problems: [ReadinessProblem("did not answer")])])
  private let ready = HealthReport(checks: [.init(name: "kafka", problems: [])])
  private let waiting = HealthReport(checks: [
    .init(name: "kafka", problems: [ReadinessProblem("no broker\nREADY=1")]),
    .init(name: "registry", problems: [ReadinessProblem("is away")]),
  ])

  @Test func roleThatLosesItsReadinessStaysStartedAndSaysWhy() {
    var state = ServiceState(isWatched: false)
    #expect(state.observe(liveness: alive, readiness: ready) == ["READY=1", "STATUS=Ready"])
    #expect(state.observe(liveness: alive, readiness: ready) == [])
    #expect(
      state.observe(liveness: alive, readiness: waiting)
        == [#"STATUS=Not ready: kafka: no broker\u{a}READY=1; registry: is away"#])
    #expect(state.observe(liveness: alive, readiness: ready) == ["STATUS=Ready"])
  }

  @Test func roleThatHangsIsNotKeptAlive() {
    var state = ServiceState(isWatched: true)
    #expect(
      state.observe(liveness: stuck, readiness: ready) == ["STATUS=Not ready: event loops: did not answer"],
      "its start is not extended, and it is not ready")
    #expect(state.observe(liveness: alive, readiness: ready) == ["WATCHDOG=1", "READY=1", "STATUS=Ready"])
    #expect(!state.observe(liveness: stuck, readiness: ready).contains("WATCHDOG=1"))
  }

  @Test func stoppingRoleIsWatchedAndNeverReadyAgain() {
    var state = ServiceState(isWatched: true)
    #expect(state.stop(waitingFor: "producer") == ["STOPPING=1", "STATUS=Stopping, waits for: producer"])
    #expect(state.observe(liveness: alive, readiness: nil) == ["WATCHDOG=1"])
    #expect(state.observe(liveness: alive, readiness: ready) == ["WATCHDOG=1"])
    #expect(state.stop(waitingFor: "producer") == [])
  }

  @Test func longStatusFitsIntoAMessage() {
    var state = ServiceState(isWatched: true)
    let report = HealthReport(checks: [
      .init(name: "kafka", problems: [ReadinessProblem(String(repeating: "é", count: 9000))])
    ])
    let message = state.observe(liveness: alive, readiness: report).joined(separator: "\n")
    #expect(message.utf8.count < 4096)
  }
}
