import HTTP2
import NIOCore
import NIOPosix
import Synchronization

/// Collects values on any thread, and lets a test wait for them within a time limit.
final class Probe<Value: Sendable>: Sendable {
  /// The condition was not met in time; `count` values had arrived.
  struct TimedOut: Error { let count: Int }

  private struct Waiter {
    let isSatisfied: @Sendable ([Value]) -> Bool
    let continuation: CheckedContinuation<[Value], any Error>
  }

  private struct Guarded {
    var values: [Value] = []
    var waiters: [Int: Waiter] = [:]
    var nextID = 0
  }

  private let guarded = Mutex(Guarded())

  /// All values so far.
  var values: [Value] { guarded.withLock { $0.values } }

  /// Adds a value.
  func add(_ value: Value) { add(contentsOf: [value]) }

  /// Adds values.
  func add(contentsOf values: [Value]) {
    let (satisfied, all) = guarded.withLock { guarded in
      guarded.values += values
      let all = guarded.values
      let satisfied = guarded.waiters.filter { $0.value.isSatisfied(all) }
      for id in satisfied.keys { guarded.waiters[id] = nil }
      return (Array(satisfied.values), all)
    }
    for waiter in satisfied { waiter.continuation.resume(returning: all) }
  }

  /// Waits until `isSatisfied` holds for the values so far and returns them; throws after 20 seconds.
  @discardableResult
  func wait(until isSatisfied: @escaping @Sendable ([Value]) -> Bool) async throws -> [Value] {
    try await withCheckedThrowingContinuation { continuation in
      let (ready, id): ([Value]?, Int) = guarded.withLock { guarded in
        if isSatisfied(guarded.values) { return (guarded.values, 0) }
        guarded.nextID += 1
        guarded.waiters[guarded.nextID] = Waiter(isSatisfied: isSatisfied, continuation: continuation)
        return (nil, guarded.nextID)
      }
      if let ready { return continuation.resume(returning: ready) }
      MultiThreadedEventLoopGroup.singleton.any().scheduleTask(in: .seconds(20)) { [self] in
        let (late, count) = guarded.withLock { ($0.waiters.removeValue(forKey: id), $0.values.count) }
        late?.continuation.resume(throwing: TimedOut(count: count))
      }
    }
  }

  /// Waits until there are `count` values and returns all of them.
  @discardableResult
  func wait(count: Int) async throws -> [Value] { try await wait { $0.count >= count } }
}

extension Probe: HTTP2PoolObserver where Value == HTTP2PoolEvent {
  func pool(_ host: String, didObserve event: HTTP2PoolEvent) { add(event) }
}
