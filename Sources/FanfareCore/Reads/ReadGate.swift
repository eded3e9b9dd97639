import Synchronization

/// Admits the reads of one store: a few at a time, and each caller's only to a share of them. Thread-safe.
///
/// The others wait in line. A caller with its share of reads under way waits behind itself, not in front of others:
/// among callers the places go round. A read is refused when too many wait, or when it has waited for the gate's
/// patience. A read whose task is cancelled leaves the line.
package final class ReadGate: Sendable {
  /// The most reads of one caller at a time.
  package static let mostOfCaller = 4

  private let store: String
  private let patience: Duration
  private let line: Mutex<ReadLine>

  /// - Parameters:
  ///   - store: The store's name in refusals, as it follows "reads of": `the registry`.
  ///   - slots: The most reads at a time, at least 1. A caller leaves one of several to others.
  ///   - waiting: The most reads that wait.
  ///   - patience: The longest wait of a read.
  package init(_ store: String, slots: Int, waiting: Int = 1024, patience: Duration = .seconds(5)) {
    self.store = store
    self.patience = patience
    line = Mutex(ReadLine(slots: slots, ofCaller: Self.mostOfCaller, waiting: waiting))
  }

  /// The reads that wait.
  package var waiting: Int { line.withLock { $0.waitingCount } }

  /// Runs a read for the current `ReadCaller` when its turn comes. Throws `TooManyReads`, `CancellationError`, and the
  /// errors of the read.
  package func run<Value>(_ read: () async throws -> Value) async throws -> Value {
    let caller = ReadCaller.current
    if !line.withLock({ $0.start(caller) }) { try await wait(caller) }
    defer { leave(caller) }
    return try await read()
  }

  private func wait(_ caller: ReadCaller?) async throws {
    let number = line.withLock { $0.nextNumber() }
    try await withTaskCancellationHandler {
      try Task.checkCancellation()
      try await withCheckedThrowingContinuation { continuation in
        join(
          ReadLine.Waiter(number: number, caller: caller, deadline: .now + patience) { continuation.resume(with: $0) })
        // The handler may have run before the read was in the line.
        if Task.isCancelled { withdraw(number) }
      }
    } onCancel: {
      withdraw(number)
    }
  }

  private func withdraw(_ number: UInt64) {
    line.withLock { $0.withdraw(number) }?.resume(.failure(CancellationError()))
  }

  private func join(_ waiter: ReadLine.Waiter) {
    switch line.withLock({ $0.join(waiter) }) {
    case .started: waiter.resume(.success(()))
    case .waits(let watch): if let watch { expire(at: watch) }
    case .refused(let isOfCaller):
      waiter.resume(.failure(TooManyReads(of: store, hasCaller: waiter.caller != nil, isOfCaller: isOfCaller)))
    }
  }

  private func leave(_ caller: ReadCaller?) { line.withLock { $0.leave(caller) }?.resume(.success(())) }

  /// Refuses the reads whose patience ends at the moment, and then further ones until none waits.
  private func expire(at moment: ContinuousClock.Instant) {
    Task { [weak self] in
      try await Task.sleep(until: moment, clock: .continuous)
      guard let self else { return }
      let (expired, next) = line.withLock { $0.expire(at: .now) }
      for waiter in expired {
        waiter.resume(.failure(TooManyReads(of: store, hasCaller: waiter.caller != nil, isOfCaller: false)))
      }
      if let next { expire(at: next) }
    }
  }
}

/// The caller for whom a task reads.
///
/// A task-local value, because only the front end, which sets it, and the gates of the stores need it: no layer between
/// them does.
package struct ReadCaller: Hashable, Sendable {
  private let hub: HubName
  /// The bytes of the name: Unicode-equivalent names are different users.
  private let user: [UInt8]

  package init(hub: HubName, user: String) { (self.hub, self.user) = (hub, Array(user.utf8)) }

  /// Nil for the process's own reads, such as a worker's: they have no share.
  @TaskLocal package static var current: ReadCaller?
}

/// The refusal of a read, because too many of the store's reads wait.
package struct TooManyReads: Error, Hashable, CustomStringConvertible {
  /// As it follows "reads of": `the registry`.
  package let store: String
  /// Whether it was read for a caller, and not for the process itself.
  package let hasCaller: Bool
  /// Whether the reads that wait are the caller's own.
  package let isOfCaller: Bool

  init(of store: String, hasCaller: Bool, isOfCaller: Bool) {
    (self.store, self.hasCaller, self.isOfCaller) = (store, hasCaller, isOfCaller)
  }

  package var description: String { "too many reads of \(store) wait" }
}
