import Dispatch
import Glibc
import Synchronization

/// Runs librdkafka calls that wait for a broker outside the cooperative pool, which they would
/// starve.
///
/// Every such call has a timeout, so that its thread is released.
enum BlockingCalls {
  private static let queue = DispatchQueue(label: "rdkafka.blocking", attributes: .concurrent)

  /// Runs `body` on a thread that may block, and returns its result.
  static func run<Value: Sendable>(
    _ body: @escaping @Sendable () throws(RDKafkaError) -> Value
  ) async throws(RDKafkaError) -> Value {
    let result: Result<Value, RDKafkaError> = await withCheckedContinuation { continuation in
      queue.async {
        do throws(RDKafkaError) {
          continuation.resume(returning: .success(try body()))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    return try result.get()
  }

  /// Runs `body` on a thread that may block, without waiting for it.
  static func detach(_ body: @escaping @Sendable () -> Void) {
    queue.async(execute: body)
  }
}

/// An event that happens once, and the tasks that wait for it.
final class OneShot: Sendable {
  private struct State {
    var hasFired = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  /// Resumes all waiting tasks. Later calls of ``wait()`` return at once.
  func fire() {
    let waiting = state.withLock { state in
      state.hasFired = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Returns after ``fire()``. Cancellation does not end the wait; the firing side bounds it.
  func wait() async {
    await withCheckedContinuation { continuation in
      let hasFired = state.withLock { state in
        if !state.hasFired { state.waiting.append(continuation) }
        return state.hasFired
      }
      if hasFired { continuation.resume() }
    }
  }
}

/// Short pauses of a dedicated thread.
enum Pause {
  /// Blocks the thread for 20 ms, to wait without an event.
  static func briefly() { usleep(20_000) }

  /// Blocks the thread for 100 ms, before a question is put to a broker again.
  static func betweenAttempts() { usleep(100_000) }

  /// Blocks the thread for half a millisecond, so that more events gather.
  static func toGather() { usleep(500) }
}

extension Duration {
  /// Whole milliseconds, rounded down, never negative.
  var wholeMilliseconds: Int {
    let (seconds, attoseconds) = components
    return max(0, Int(clamping: seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
  }

  /// Whole milliseconds as a timeout of librdkafka, at most a day.
  var timeoutMilliseconds: Int32 { Int32(clamping: min(wholeMilliseconds, 86_400_000)) }
}
