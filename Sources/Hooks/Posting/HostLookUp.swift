import Dispatch
import Synchronization

/// Looks up the addresses of one host, once at a time for all callers.
///
/// The system's resolver blocks for as long as it waits for name servers, and cannot be stopped. So it has a queue of
/// its own for each host, and a cancelled caller does not wait for it.
final class HostLookUp: Sendable {
  /// Looks up the addresses of a host. Blocks.
  typealias Function = @Sendable (String) throws -> [String]
  private typealias Answer = Result<[String], any Error>

  private let host: String
  private let function: Function
  private let queue = DispatchQueue(label: "hooks.look-up")
  /// The callers of the look-up that is under way. Those that were cancelled stay until it ends.
  private let callers = Mutex<[AsyncStream<Answer>.Continuation]>([])

  init(of host: String, _ function: @escaping Function) {
    self.host = host
    self.function = function
  }

  /// Throws the function's error, and `CancellationError` as soon as the task is cancelled.
  func addresses() async throws -> [String] {
    let (answers, caller) = AsyncStream.makeStream(of: Answer.self)
    let isFirst = callers.withLock { callers in
      defer { callers.append(caller) }
      return callers.isEmpty
    }
    if isFirst {
      queue.async { [self] in
        let answer = Answer { try function(host) }
        let callers = callers.withLock { callers in
          defer { callers = [] }
          return callers
        }
        for caller in callers {
          caller.yield(answer)
          caller.finish()
        }
      }
    }
    for await answer in answers { return try answer.get() }
    throw CancellationError()
  }
}
