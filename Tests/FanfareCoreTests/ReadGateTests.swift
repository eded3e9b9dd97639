import Synchronization
import Testing

@testable import FanfareCore

/// The places of a store's reads, their line, and the share of each caller.
@Suite(.timeLimit(.minutes(1))) struct ReadGateTests {
  private static let ann = ReadCaller(hub: .default, user: "ann")
  private static let bob = ReadCaller(hub: .default, user: "bob")
  private static let start = ContinuousClock.now

  /// A line whose waiters do nothing.
  private struct Line {
    var line: ReadLine

    init(slots: Int, waiting: Int = 100) { line = ReadLine(slots: slots, ofCaller: 4, waiting: waiting) }

    mutating func join(
      _ caller: ReadCaller?, deadline: Duration = .seconds(5)
    ) -> (number: UInt64, joining: ReadLine.Joining) {
      let number = line.nextNumber()
      let joining = line.join(
        ReadLine.Waiter(number: number, caller: caller, deadline: ReadGateTests.start + deadline) { _ in })
      #expect(line.checkInvariants().isEmpty)
      return (number, joining)
    }

    mutating func leave(_ caller: ReadCaller?) -> UInt64? {
      defer { #expect(line.checkInvariants().isEmpty) }
      return line.leave(caller)?.number
    }
  }

  @Test func callerHasAtMostItsShareAndLeavesASlotToOthers() {
    for (slots, share) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 4), (100, 4)] {
      var line = Line(slots: slots)
      let started = (0..<10).count { _ in line.join(Self.ann).joining == .started }
      #expect(started == share)
      #expect((line.join(Self.bob).joining == .started) == (slots > 1))
    }
  }

  @Test func placesGoRoundAmongCallers() {
    var line = Line(slots: 2)
    #expect(line.join(Self.ann).joining == .started)
    #expect(line.join(nil).joining == .started)
    let flood = (0..<20).map { _ in line.join(Self.ann).number }
    let other = line.join(Self.bob).number
    // Ann runs a read, so all of hers are held behind it, and bob is the first in the queue.
    #expect(line.leave(nil) == other)
    #expect(line.leave(Self.ann) == flood[0])
    #expect(line.leave(Self.bob) == nil)
    #expect(line.leave(Self.ann) == flood[1])
  }

  @Test func processItselfHasNoShare() {
    var line = Line(slots: 4)
    #expect((0..<4).allSatisfy { _ in line.join(nil).joining == .started })
    #expect(line.join(nil).joining != .started)
  }

  @Test func oneCallersWaitingReadsLeaveRoomForOthers() {
    var line = Line(slots: 2, waiting: 100)
    let joinings = (0..<200).map { _ in line.join(Self.ann).joining }
    #expect(joinings.count { $0 == .refused(isOfCaller: true) } == 149)
    #expect(line.line.waitingCount == 50)
    #expect(line.join(Self.bob).joining == .started)
    #expect(line.join(Self.bob).joining == .waits(nil))
    for _ in 0..<49 { #expect(line.join(nil).joining == .waits(nil)) }
    #expect(line.join(nil).joining == .refused(isOfCaller: false))
  }

  @Test func patienceEndsInTheOrderOfArrival() {
    var line = Line(slots: 1)
    #expect(line.join(nil).joining == .started)
    let first = line.join(Self.ann, deadline: .seconds(5))
    #expect(first.joining == .waits(Self.start + .seconds(5)))
    let second = line.join(Self.ann, deadline: .seconds(6))
    #expect(second.joining == .waits(nil))
    let (expired, next) = line.line.expire(at: Self.start + .seconds(5))
    #expect(expired.map(\.number) == [first.number])
    #expect(next == Self.start + .seconds(6))
    #expect(line.line.expire(at: Self.start + .seconds(6)).next == nil)
    #expect(line.line.checkInvariants().isEmpty)
    // The next one that waits asks to be watched again.
    #expect(line.join(Self.bob, deadline: .seconds(9)).joining == .waits(Self.start + .seconds(9)))
  }

  @Test func withdrawnReadLetsTheNextOfItsCallerIntoTheQueue() {
    var line = Line(slots: 1)
    #expect(line.join(nil).joining == .started)
    let reads = (0..<3).map { _ in line.join(Self.ann).number }
    let other = line.join(Self.bob).number
    #expect(line.line.withdraw(reads[0]) != nil)
    #expect(line.line.withdraw(reads[0]) == nil)
    #expect(line.line.withdraw(reads[2]) != nil)
    #expect(line.line.checkInvariants().isEmpty)
    #expect(line.leave(nil) == other)
    #expect(line.leave(Self.bob) == reads[1])
    #expect(line.leave(Self.ann) == nil)
  }

  @Test func invariantsHoldInRandomHistories() {
    for seed in 0..<50 as Range<UInt64> {
      var random = SplitMix64(seed: seed)
      let callers = [nil, Self.ann, Self.bob, ReadCaller(hub: .default, user: "eve")]
      var line = Line(slots: .random(in: 1...6, using: &random), waiting: .random(in: 0...20, using: &random))
      var (running, waiting): ([ReadCaller?], [UInt64: ReadCaller?]) = ([], [:])
      for _ in 0..<400 {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5:
          let caller = callers.randomElement(using: &random) ?? nil
          let (number, joining) = line.join(caller)
          if joining == .started { running.append(caller) } else if case .waits = joining { waiting[number] = caller }
        case 5..<8 where !running.isEmpty:
          let place = Int.random(in: running.indices, using: &random)
          if let next = line.leave(running.remove(at: place)), let caller = waiting.removeValue(forKey: next) {
            running.append(caller)
          }
        default:
          guard let number = waiting.keys.sorted().randomElement(using: &random) else { continue }
          #expect(line.line.withdraw(number) != nil)
          waiting[number] = nil
          #expect(line.line.checkInvariants().isEmpty)
        }
      }
      while let caller = running.popLast() {
        if let next = line.leave(caller), let caller = waiting.removeValue(forKey: next) { running.append(caller) }
      }
      #expect(waiting.isEmpty && line.line.waitingCount == 0)
    }
  }

  @Test func cancelledReadLeavesTheLine() async throws {
    let gate = ReadGate("the store", slots: 1, patience: .seconds(3600))
    let (release, holder) = try await held(gate)
    let read = Task { try await gate.run { 1 } }
    while gate.waiting == 0 { await Task.yield() }
    read.cancel()
    await #expect(throws: CancellationError.self) { try await read.value }
    #expect(gate.waiting == 0)
    release.finish()
    try await holder.value
    #expect(try await gate.run { 2 } == 2)
  }

  @Test func impatientReadIsRefusedWithTheNameOfTheStore() async throws {
    let gate = ReadGate("the store", slots: 1, patience: .milliseconds(1))
    let (release, holder) = try await held(gate)
    for caller in [nil, Self.ann] {
      let error = await #expect(throws: TooManyReads.self) {
        try await ReadCaller.$current.withValue(caller) { try await gate.run {} }
      }
      #expect(error?.store == "the store")
      #expect(error?.isOfCaller == false)
      #expect(error?.hasCaller == (caller != nil))
    }
    release.finish()
    try await holder.value
  }

  @Test func slotIsFreeAgainAfterAnError() async throws {
    struct Failure: Error {}
    let gate = ReadGate("the store", slots: 1)
    await #expect(throws: Failure.self) { try await gate.run { throw Failure() } }
    #expect(try await gate.run { 3 } == 3)
  }

  /// How many reads run.
  private final class Meter: Sendable {
    let running = Mutex((now: 0, most: 0))
  }

  @Test func manyReadsRunOneAfterAnother() async throws {
    let gate = ReadGate("the store", slots: 2, patience: .seconds(3600))
    let meter = Meter()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<300 {
        group.addTask {
          try await ReadCaller.$current.withValue(number % 3 == 0 ? nil : number % 3 == 1 ? Self.ann : Self.bob) {
            try await gate.run {
              meter.running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
              await Task.yield()
              meter.running.withLock { $0.now -= 1 }
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect((1...2).contains(meter.running.withLock { $0.most }))
    #expect(gate.waiting == 0)
  }

  /// Occupies a slot until the continuation finishes.
  private func held(_ gate: ReadGate) async throws -> (AsyncStream<Void>.Continuation, Task<Void, any Error>) {
    let (releases, release) = AsyncStream.makeStream(of: Void.self)
    let (begins, begin) = AsyncStream.makeStream(of: Void.self)
    let holder = Task {
      try await gate.run {
        begin.finish()
        for await _ in releases {}
      }
    }
    for await _ in begins {}
    return (release, holder)
  }
}
