package import FanfareCore
import Synchronization
package import Testing

/// Submits pushes and waits for their outcomes.
package enum Outcomes {
  package struct TimedOut: Error {}

  /// The outcomes in the order of the pushes. Throws if one does not arrive.
  package static func submit(_ pushes: [Push], to sender: any PushSender) async throws -> [PushOutcome] {
    let (stream, continuation) = AsyncStream.makeStream(of: [PushResult].self)
    sender.submit(pushes) { continuation.yield($0) }
    return try await withThrowingTaskGroup(of: [PushOutcome].self) { group in
      group.addTask {
        var outcomes: [UInt64: PushOutcome] = [:]
        for await results in stream {
          for result in results {
            precondition(outcomes.updateValue(result.outcome, forKey: result.ticket) == nil, "reported twice")
          }
          if outcomes.count == pushes.count { break }
        }
        return pushes.compactMap { outcomes[$0.ticket] }
      }
      group.addTask {
        try await Task.sleep(for: Patience.event)
        throw TimedOut()
      }
      defer { group.cancelAll() }
      guard let outcomes = try await group.next(), outcomes.count == pushes.count else { throw TimedOut() }
      return outcomes
    }
  }

  /// The verdicts only.
  package static func verdicts(_ pushes: [Push], to sender: any PushSender) async throws -> [PushOutcome.Verdict] {
    try await submit(pushes, to: sender).map(\.verdict)
  }

  /// Sends until there is a connection, so that a later short deadline concerns the answer only. Retries, because a
  /// busy machine may need longer for its first connection.
  package static func warmUp(_ sender: any PushSender, _ push: () throws -> Push) async throws {
    let end = ContinuousClock.now + Patience.event
    while ContinuousClock.now < end {
      if try await verdicts([try push()], to: sender) == [.accepted] { return }
    }
    throw TimedOut()
  }

  /// Runs a sender while `body` runs.
  package static func running<S: PushSender>(_ sender: S, _ body: (S) async throws -> Void) async throws {
    let task = Task { try await sender.run() }
    do { try await body(sender) } catch {
      task.cancel()
      _ = await task.result
      throw error
    }
    task.cancel()
    try await task.value
  }
}

/// `#expect` for awaited values inside closures, where the macro does not see the effects.
package func expectEqual<Value: Equatable>(
  _ found: Value, _ expected: Value, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(found == expected, sourceLocation: sourceLocation)
}
