import Synchronization

/// The readers that see each notification as it arrives.
final class NotificationObservers: Sendable {
  private let continuations = Mutex<[Int: AsyncStream<ReceivedNotification>.Continuation]>([:])
  private let nextNumber = Atomic<Int>(0)
  /// Avoids the lock while there is no reader, the usual case.
  private let hasObservers = Atomic<Bool>(false)

  var count: Int { continuations.withLock { $0.count } }

  /// A stream of the notifications from now on, which buffers the newest `limit`.
  func stream(bufferingNewest limit: Int) -> AsyncStream<ReceivedNotification> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: ReceivedNotification.self, bufferingPolicy: .bufferingNewest(max(limit, 1)))
    let number = nextNumber.wrappingAdd(1, ordering: .relaxed).oldValue
    continuation.onTermination = { [weak self] _ in self?.remove(number) }
    continuations.withLock {
      $0[number] = continuation
      hasObservers.store(true, ordering: .releasing)
    }
    return stream
  }

  func notify(_ notification: ReceivedNotification) {
    guard hasObservers.load(ordering: .acquiring) else { return }
    // Outside the lock, because a stream that has ended calls `remove`.
    let current = continuations.withLock { Array($0.values) }
    for continuation in current { continuation.yield(notification) }
  }

  private func remove(_ number: Int) {
    continuations.withLock {
      $0[number] = nil
      hasObservers.store(!$0.isEmpty, ordering: .releasing)
    }
  }
}
