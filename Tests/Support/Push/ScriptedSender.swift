package import FanfareCore
import Synchronization

/// A push sender controlled by the test: records every push in order, and answers by script or when told to.
package final class ScriptedSender: PushSender {
  /// The script's answer to a push; nil if the test answers later. `attempt` counts the submissions of this push id,
  /// from 1.
  package typealias Script = @Sendable (_ push: Push, _ attempt: Int) -> PushOutcome?

  private struct Pending {
    let push: Push
    let completion: @Sendable ([PushResult]) -> Void
  }

  private struct Waiter {
    let count: Int
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var script: Script
    var pushes: [Push] = []
    var attempts: [PushID: Int] = [:]
    var pending: [Pending] = []
    var waiters: [Int: Waiter] = [:]
    var lastWaiter = 0
    var refusal: PushOutcome?
  }

  /// No push arrived in time.
  package struct TimedOut: Error {}

  package let platform: Platform
  private let state: Mutex<State>

  /// Accepts everything at once, unless the script says otherwise.
  package init(_ platform: Platform, script: @escaping Script = { _, _ in PushOutcome(.accepted, status: 200) }) {
    self.platform = platform
    state = Mutex(State(script: script))
  }

  package func setScript(_ script: @escaping Script) {
    state.withLock { $0.script = script }
  }

  /// The outcome that rendering throws from now on; nil if it succeeds.
  package func setRefusal(_ outcome: PushOutcome?) {
    state.withLock { $0.refusal = outcome }
  }

  /// All pushes so far, in order of submission.
  package var pushes: [Push] { state.withLock { $0.pushes } }

  /// Answers the waiting pushes that `choose` selects, in the order it gives.
  package func answer(_ outcome: PushOutcome, choosing choose: ([Push]) -> [Push] = { $0 }) {
    let chosen = state.withLock { state -> [Pending] in
      let tickets = choose(state.pending.map(\.push)).map(\.ticket)
      let chosen = tickets.compactMap { ticket in state.pending.first { $0.push.ticket == ticket } }
      state.pending.removeAll { tickets.contains($0.push.ticket) }
      return chosen
    }
    for pending in chosen { pending.completion([PushResult(ticket: pending.push.ticket, outcome: outcome)]) }
  }

  /// Waits until this many pushes have been submitted in all; throws `TimedOut` when that takes too long.
  package func waitForPushes(_ count: Int, within limit: Duration = .seconds(30)) async throws {
    let number = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    let alarm = Task { [self] in
      try await Task.sleep(for: limit)
      let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
      waiter?.continuation.resume(throwing: TimedOut())
    }
    defer { alarm.cancel() }
    try await withCheckedThrowingContinuation { continuation in
      let isThere = state.withLock { state in
        if state.pushes.count < count { state.waiters[number] = Waiter(count: count, continuation: continuation) }
        return state.pushes.count >= count
      }
      if isThere { continuation.resume() }
    }
  }

  package func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    if let refusal = state.withLock({ $0.refusal }) { throw refusal }
    return RenderedPush(headers: [], body: Array("\(send.id)".utf8))
  }

  package func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {
    let (results, waiters) = state.withLock { state -> ([PushResult], [Waiter]) in
      var results: [PushResult] = []
      for push in pushes {
        state.pushes.append(push)
        let attempt = state.attempts[push.id, default: 0] + 1
        state.attempts[push.id] = attempt
        if let outcome = state.script(push, attempt) {
          results.append(PushResult(ticket: push.ticket, outcome: outcome))
        } else {
          state.pending.append(Pending(push: push, completion: completion))
        }
      }
      let reached = state.waiters.filter { $0.value.count <= state.pushes.count }
      for number in reached.keys { state.waiters.removeValue(forKey: number) }
      return (results, Array(reached.values))
    }
    if !results.isEmpty { completion(results) }
    for waiter in waiters { waiter.continuation.resume() }
  }

  package func run() async throws {}

  package var readinessProblem: String? { nil }
}
