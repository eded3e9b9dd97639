import Dispatch
import FanfareCore
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(1))) struct HealthTests {
  @Test func reportIsGoodIfAllChecksPass() async {
    let health = HealthRegistry(readiness: [NamedCheck("kafka") { nil }, NamedCheck("registry") { nil }])
    let report = await health.readiness()
    #expect(report.isGood)
    #expect(report.checks.map(\.name) == ["kafka", "registry"])
  }

  @Test func problemIsReportedUnderItsCheck() async throws {
    let health = HealthRegistry(readiness: [NamedCheck("kafka") { "no broker \"b1\"" }, NamedCheck("registry") { nil }])
    let report = await health.readiness()
    #expect(!report.isGood)
    #expect(
      try report.json(good: "ready", bad: "waiting")
        == #"{"checks":[{"complaint":"no broker \"b1\"","name":"kafka"},{"name":"registry"}],"status":"waiting"}"#)
  }

  @Test func hangingCheckFailsAfterTheLimitAndIsNotStartedAgain() async {
    let gate = Gate()
    let asked = Mutex(0)
    // The limit is long enough for the second check on a busy machine.
    let health = HealthRegistry(
      readiness: [
        NamedCheck("stuck") {
          asked.withLock { $0 += 1 }
          await gate.passed()
          return nil
        },
        NamedCheck("fine") { nil },
      ], limit: .milliseconds(500), now: Self.hastyClock())
    for _ in 0..<5 {
      let report = await health.readiness()
      #expect(report.checks[0].problem == "did not answer within 0.5 seconds")
      #expect(report.checks[1].problem == nil)
    }
    // Five callers, one call: the later callers wait for the first call.
    #expect(asked.withLock { $0 } == 1)
    gate.open()
  }

  /// Otherwise every probe and every stranger would cost a query of each database.
  @Test func reportIsGivenAgainForASecond() async {
    let asked = Mutex(0)
    let elapsed = Mutex(Duration.zero)
    let start = ContinuousClock.now
    let health = HealthRegistry(
      readiness: [
        NamedCheck("counting") {
          asked.withLock {
            $0 += 1; return "\($0)"
          }
        }
      ], now: { start + elapsed.withLock { $0 } })
    for (time, answer) in [(0, "1"), (999, "1"), (1000, "2"), (1001, "2"), (5000, "3")] {
      elapsed.withLock { $0 = .milliseconds(time) }
      #expect(await health.readiness().checks[0].problem == answer)
    }
  }

  /// A clock that advances by two seconds with each reading, so that no report is given again.
  private static func hastyClock() -> @Sendable () -> ContinuousClock.Instant {
    let start = ContinuousClock.now
    let readings = Mutex(0)
    return {
      start
        + .seconds(
          readings.withLock {
            $0 += 2; return $0
          })
    }
  }

  @Test func finishedCheckRunsAgainForTheNextCaller() async {
    let asked = Mutex(0)
    let check = BoundedCheck(
      NamedCheck("counting") {
        asked.withLock {
          $0 += 1; return "\($0)"
        }
      }, limit: .seconds(60))
    #expect(await check.problems().map(\.text) == ["1"])
    #expect(await check.problems().map(\.text) == ["2"])
  }

  @Test func blockedEventLoopFailsLiveness() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    #expect(await EventLoopsCheck(group: group).problems().isEmpty)
    let health = HealthRegistry(
      liveness: [EventLoopsCheck(group: group)], readiness: [], limit: .milliseconds(20), now: Self.hastyClock())
    let release = DispatchSemaphore(value: 0)
    group.next().execute { release.wait() }
    let report = await health.liveness()
    #expect(report.checks.map(\.problem) == ["did not answer within 0.02 seconds"])
    release.signal()
    // The pending check ends now; it must not outlive the loops.
    while await !health.liveness().isGood {}
    try await group.shutdownGracefully()
  }
}

/// Suspends tasks until it is opened.
private final class Gate: Sendable {
  private let state = Mutex<(isOpen: Bool, waiters: [CheckedContinuation<Void, Never>])>((false, []))

  func passed() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiters.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  func open() {
    let waiters = state.withLock { state in
      defer { state = (true, []) }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }
}
