import FanfareCore
import NIOCore
import Synchronization

/// The pushes of one submission on their way, whose ends are reported together as far as they come together.
final class WNSBatch: Sendable {
  private let pending = Mutex<[PushResult]>([])
  private let eventLoop: any EventLoop
  private let completion: @Sendable ([PushResult]) -> Void

  init(eventLoop: any EventLoop, completion: @escaping @Sendable ([PushResult]) -> Void) {
    self.eventLoop = eventLoop
    self.completion = completion
  }

  /// Reports ends, on the event loop and never from inside this call: all of one turn at once.
  func report(_ results: [PushResult]) {
    guard !results.isEmpty else { return }
    let isFirst = pending.withLock { pending in
      defer { pending.append(contentsOf: results) }
      return pending.isEmpty
    }
    guard isFirst else { return }
    eventLoop.execute { [self] in
      let results = pending.withLock { pending in
        defer { pending = [] }
        return pending
      }
      completion(results)
    }
  }
}
