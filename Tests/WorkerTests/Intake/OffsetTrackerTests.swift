import Support
import Testing

@testable import Worker

struct OffsetTrackerTests {
  /// Begins a record that was not settled before.
  private func begin(_ offset: Int64, at timestamp: Int64 = -1, in tracker: inout OffsetTracker) throws -> Int64 {
    let sequence = tracker.begin(offset, timestamp: timestamp)
    return try #require(sequence)
  }

  /// A tracker that takes over from another.
  private func resumed(from end: (position: Int64, metadata: String?)?) -> OffsetTracker {
    var tracker = OffsetTracker()
    if let end { tracker.resume(from: end.position, settled: SettledRuns(end.metadata, from: end.position)) }
    return tracker
  }

  @Test func positionIsEndOfSettledPrefix() throws {
    var tracker = OffsetTracker()
    let numbers = try [5, 6, 9].map { try begin($0, in: &tracker) }
    #expect(tracker.position == nil)
    tracker.settle(numbers[1])
    #expect(tracker.position == nil)
    tracker.settle(numbers[0])
    #expect(tracker.position == 7)
    #expect(tracker.span == 1)
    tracker.settle(numbers[2])
    #expect(tracker.position == 10)
    #expect(tracker.span == 0)
    #expect(tracker.unsettled == 0)
  }

  @Test func learntOffsetsAreSkippedHoweverOld() throws {
    for (position, done) in [(3, []), (7, [5, 6]), (20, [5, 6, 7, 8, 9])] as [(Int64, [Int64])] {
      var tracker = resumed(from: (5, "CB"))
      tracker.learn(SettledRuns(), below: position)
      let passed = (5..<10).filter { tracker.begin($0) == nil }
      #expect(Set(passed) == Set(done + [7]))
    }
    // Where the group has no position, reading begins at the first record.
    var tracker = OffsetTracker()
    tracker.learn(SettledRuns("BB", from: 2), below: 2)
    let passed = (0..<5).filter { tracker.begin($0) == nil }
    #expect(passed == [0, 1, 3])
    // Work has begun: a recovery now is too late.
    tracker.learn(SettledRuns(), below: 9)
    _ = try begin(5, in: &tracker)
  }

  @Test func settlingTwiceOrUnknownChangesNothing() throws {
    var tracker = OffsetTracker()
    let first = try begin(0, in: &tracker)
    let second = try begin(1, in: &tracker)
    #expect(tracker.settle(first) == true)
    #expect(tracker.settle(first) == false)
    #expect(tracker.settle(second + 1) == false)
    #expect(tracker.settle(-1) == false)
    #expect(tracker.position == 1)
    #expect(tracker.unsettled == 1)
  }

  @Test func offsetsOfLostLogSettleNothingInNewOne() throws {
    var tracker = OffsetTracker()
    let late = try begin(10, in: &tracker)
    let first = try begin(4, in: &tracker)
    #expect(tracker.position == 4)
    #expect(tracker.settle(late) == false)
    #expect(tracker.unsettled == 1)
    #expect(tracker.span == 1)
    tracker.settle(first)
    #expect(tracker.position == 5)
    #expect(tracker.committable(limit: 100)?.metadata == nil)
  }

  @Test
  func noPositionBeforeFirstSettledNoMetadataWithoutGap()
    throws
  {
    var tracker = OffsetTracker()
    let numbers = try [5, 6].map { try begin($0, in: &tracker) }
    #expect(tracker.committable(limit: 100) == nil)
    tracker.settle(numbers[0])
    #expect(tracker.committable(limit: 100)?.position == 6)
    #expect(tracker.committable(limit: 100)?.metadata == nil)
  }

  @Test func recordsSettledAboveFirstUnsettledAreRemembered() throws {
    var tracker = OffsetTracker()
    let numbers = try [5, 6, 9, 10].map { try begin($0, in: &tracker) }
    for number in [numbers[1], numbers[2]] { tracker.settle(number) }
    let end = tracker.committable(limit: 100)
    #expect(end?.position == 5)
    // From 6 to 9: what lies between never came.
    #expect(end?.metadata == "BE")
    var next = resumed(from: end)
    let begun = [5, 6, 9, 10].map { next.begin($0) != nil }
    #expect(begun == [true, false, false, true])
  }

  @Test func recordsSettledByEarlierOwnerMovePosition() throws {
    var tracker = resumed(from: (5, "BC"))
    #expect(tracker.committable(limit: 100) == nil)
    let first = try begin(5, in: &tracker)
    #expect(tracker.begin(6) == nil)
    tracker.settle(first)
    #expect(tracker.position == 7)
    // The rest of it is handed on.
    #expect(tracker.committable(limit: 100)?.metadata == "AB")
    #expect(tracker.begin(7) == nil)
    #expect(tracker.position == 8)
    #expect(tracker.begin(8) != nil)
  }

  @Test func logThatRestartsBelowPositionIsAnotherLog() throws {
    var tracker = resumed(from: (5, "BC"))
    #expect(tracker.begin(4) != nil)
    #expect(tracker.begin(6) != nil)
    var later = resumed(from: (5, "BCBB"))
    #expect(later.begin(6) == nil)
    #expect(later.begin(5) != nil)
    #expect(later.begin(6) != nil)
    #expect(later.begin(9) != nil)
  }

  @Test func resumeAfterFirstRecordHasNoEffect() throws {
    var tracker = OffsetTracker()
    tracker.settle(try begin(5, in: &tracker))
    tracker.resume(from: 5, settled: SettledRuns("BC", from: 5))
    #expect(tracker.begin(6) != nil)
  }

  /// Against a model that keeps everything: never past an unsettled record, always up to it.
  @Test(arguments: 0..<50) func randomInterleavingsAgreeWithModel(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var tracker = OffsetTracker()
    var begun: [(sequence: Int64, offset: Int64, written: Int64)] = []
    var open: [Int] = []
    var settled: Set<Int> = []
    var offset: Int64 = 0
    var written: Int64 = 1_000_000
    for _ in 0..<400 {
      if open.isEmpty || Bool.random(using: &random) {
        // Holes as compaction and transaction markers leave them.
        offset += Int64.random(in: 1...3, using: &random)
        // And times as producers with clocks of their own give them.
        written += Int64.random(in: -500...1500, using: &random)
        begun.append((try begin(offset, at: written, in: &tracker), offset, written))
        open.append(begun.count - 1)
      } else {
        let index = open.remove(at: Int.random(in: open.indices, using: &random))
        settled.insert(index)
        #expect(tracker.settle(begun[index].sequence) == true)
      }
      let firstOpen = begun.indices.first { !settled.contains($0) } ?? begun.count
      let expected = firstOpen == 0 ? nil : begun[firstOpen - 1].offset + 1
      guard tracker.position == expected, tracker.unsettled == open.count, tracker.span == begun.count - firstOpen
      else {
        Issue.record("position \(tracker.position as Int64?) where the model has \(expected as Int64?)")
        return
      }
      let oldest = firstOpen < begun.count ? begun[firstOpen].written : nil
      let timestamp = tracker.oldestTimestamp
      let isRight =
        if let oldest, let timestamp { abs(timestamp - oldest) < 1000 } else { oldest == nil && timestamp == nil }
      guard isRight else {
        Issue.record("the oldest is of \(timestamp as Int64?) where the model has \(oldest as Int64?)")
        return
      }
    }
  }

  /// One owner after another dies with its last commit. No record is lost, and none that a commit calls settled is
  /// repeated, unless the metadata's limit has cut it off.
  @Test(arguments: 0..<40) func chainOfOwnersLosesNothingAndRepeatsOnlyUncommittedRecords(seed: UInt64)
    throws
  {
    var random = SeededGenerator(seed: seed)
    // The log: offsets with holes.
    var log: [Int64] = []
    for _ in 0..<200 { log.append((log.last ?? 100) + Int64.random(in: 0...9, using: &random) / 8 + 1) }
    let limit = [0, 12, 30, 3_500].randomElement(using: &random) ?? 0
    var settled: Set<Int64> = []
    var committed: (position: Int64, metadata: String?)?
    var said: Set<Int64> = []
    var owners = 0
    while committed?.position ?? 0 <= log[log.count - 1] {
      owners += 1
      var tracker = resumed(from: committed)
      var rest = log.drop { $0 < committed?.position ?? 0 }
      var open: [(sequence: Int64, offset: Int64)] = []
      var known = said
      let life = Int.random(in: 20...200, using: &random)
      for step in 0..<life {
        if open.isEmpty || Int.random(in: 0..<5, using: &random) < 3, let offset = rest.popFirst() {
          if let sequence = tracker.begin(offset) {
            if said.contains(offset) { Issue.record("\(offset) is done again though a commit said that it is settled") }
            open.append((sequence, offset))
          } else if !settled.contains(offset) {
            Issue.record("\(offset) is lost")
          }
        } else if !open.isEmpty {
          // Mostly not the oldest.
          let end = open.remove(at: Int.random(in: open.indices, using: &random))
          tracker.settle(end.sequence)
          settled.insert(end.offset)
          known.insert(end.offset)
        }
        guard step % 7 == 0 || rest.isEmpty, let end = tracker.committable(limit: limit) else { continue }
        try #require(end.position >= committed?.position ?? 0)
        try #require(log.allSatisfy { $0 >= end.position || settled.contains($0) })
        let ranges = Array(SettledRuns(end.metadata, from: end.position).ranges)
        let isSaid = { (offset: Int64) in offset < end.position || ranges.contains { $0.contains(offset) } }
        try #require(log.allSatisfy { !isSaid($0) || settled.contains($0) })
        // With room for everything, the metadata names all records settled in this life and in earlier ones.
        if limit == 3_500 { try #require(known.allSatisfy(isSaid)) }
        said = Set(log.filter(isSaid))
        committed = end
      }
      try #require(owners < 500)
    }
    #expect(settled == Set(log))
  }
}
