import FanfareCore
import RDKafka
import Testing

@testable import Worker

struct PumpStateTests {
  private static let partition = TopicPartition(topic: "fanfare.retry.15s", partition: 0)
  private static let start = UnixTime(milliseconds: 1_800_000_000_000)

  private static let transient = RDKafkaError(code: .notPersisted, message: "refused by the test")
  private static let tooLarge = RDKafkaError(code: .messageTooLarge, message: "refused by the test")

  private var state: PumpState
  private var credit = 0
  private var committed: [PartitionOffset] = []
  /// The group's answer to a new owner.
  private var found: [PartitionOffset] = []

  init() {
    var policy = PumpPolicy(.whenDue(delay: .seconds(20)))
    policy.records = 4
    // Due records are released on the second.
    state = PumpState(policy)
    credit = advance(.event(.assigned([Self.partition], Rebalance {})), at: 0).credit
  }

  private static func moment(_ seconds: Int) -> Moment {
    Moment(wall: start + .seconds(seconds), uptime: Int64(seconds) * 1000)
  }

  /// Takes a step, and answers the commits and questions that follow. Returns the step's effects, with the rebalances
  /// that the answers complete.
  private mutating func advance(_ step: PumpStep, at seconds: Int) -> PumpState.Effects {
    var effects = state.advance(step, at: Self.moment(seconds))
    var next = effects.group
    while !next.commit.isEmpty || !next.recoveries.isEmpty {
      committed += next.commit
      var steps = next.recoveries.map { PumpStep.recovered(OffsetAnswer(number: $0.number, committed: found)) }
      if !next.commit.isEmpty { steps.append(.committed(CommitEnd(offsets: next.commit, error: nil))) }
      next = GroupActions()
      for step in steps {
        let further = state.advance(step, at: Self.moment(seconds))
        effects.credit += further.credit
        effects.due += further.due
        effects.group.completions += further.group.completions
        effects.group.isToLeave = effects.group.isToLeave || further.group.isToLeave
        next.commit += further.group.commit
        next.recoveries += further.group.recoveries
      }
    }
    return effects
  }

  /// Records due after that number of seconds each, with ascending offsets.
  private func records(_ due: [Int], from first: Int64 = 0, cameEarly: Bool = false) -> [ConsumedRecord] {
    due.enumerated().map { number, seconds in
      let send = SendRequest(
        id: .random(), acceptedAt: Self.start, audience: .user("bob"),
        content: Content(message: Message(body: "\(seconds)")))
      let device = RetryRecord.Waiting(
        registration: .random(), platform: .apns, notBefore: Self.start + .seconds(seconds), attempts: 1,
        heldAttempts: 0,
        waits: 1,
        wasUnanswered: false, firstAttemptAt: Self.start, reason: "Busy", status: 503)
      let retry = RetryRecord(
        send: send, part: 0, parts: 1, attempt: nil, deferrals: 1, cameEarly: cameEarly, devices: [.waiting(device)])
      return record(retry.encoded(at: Self.start), at: first + Int64(number))
    }
  }

  private func record(_ value: [UInt8], at offset: Int64, of partition: Int32 = 0) -> ConsumedRecord {
    ConsumedRecord(
      topic: Self.partition.topic, partition: partition, offset: offset, timestamp: Self.start.milliseconds, key: nil,
      value: value[...])
  }

  @Test mutating func recordsAreReleasedWhenTheyAreDueAndNotBefore() {
    #expect(state.advance(.event(.records(records([15, 5]))), at: Self.moment(0)).due.isEmpty)
    #expect(state.advance(.tick, at: Self.moment(4)).due.isEmpty)
    #expect(state.advance(.tick, at: Self.moment(5)).due.map(\.origin.sequence) == [1])
    #expect(state.advance(.tick, at: Self.moment(15)).due.map(\.origin.sequence) == [0])
    #expect(state.held == 2)
  }

  /// Deferred pages of a broadcast are hundreds of kilobytes each.
  @Test func creditIsTakenBackWhenRecordsTurnOutLarge() {
    var policy = PumpPolicy(.whenDue(delay: .seconds(20)))
    policy.bytes = 10 * 1024 * 1024
    var state = PumpState(policy)
    var credit = state.advance(.event(.assigned([Self.partition], Rebalance {})), at: Self.moment(0)).credit
    #expect(credit == policy.bytes / 16_384)
    // Due at once, as all that cannot be read.
    let large = [UInt8](repeating: 0x20, count: 1024 * 1024)
    var due: [HeldRecord] = []
    func take(_ offsets: Range<Int64>) {
      let effects = state.advance(.event(.records(offsets.map { record(large, at: $0) })), at: Self.moment(0))
      due += effects.due
      credit += effects.credit - offsets.count
    }
    for offset in 0..<4 {
      take(Int64(offset)..<Int64(offset) + 1)
      #expect(credit == 9 - offset, "there is room for ten")
    }
    // More were on their way than fit: none is asked for until they are gone, and then as many as there is room for.
    take(4..<14)
    #expect((due.count, credit) == (14, 0))
    credit += state.advance(.acknowledged(due[..<3].map { ($0, nil) }), at: Self.moment(0)).credit
    #expect(credit == 0)
    credit += state.advance(.acknowledged(due[3..<10].map { ($0, nil) }), at: Self.moment(0)).credit
    #expect((state.held, credit) == (4, 6))
  }

  @Test mutating func recordsDueAtNearlyTheSameTimeAreReleasedTogether() {
    var state = PumpState(PumpPolicy(.whenDue(delay: .seconds(300))))
    _ = state.advance(.event(.assigned([Self.partition], Rebalance {})), at: Self.moment(0))
    #expect(
      state.advance(.event(.records(records([101, 105, 106, 0]))), at: Self.moment(0)).due.map(\.origin.sequence) == [3]
    )
    #expect(state.advance(.tick, at: Self.moment(104)).due.isEmpty)
    #expect(state.advance(.tick, at: Self.moment(105)).due.map(\.origin.sequence) == [0, 1])
    #expect(state.advance(.tick, at: Self.moment(110)).due.map(\.origin.sequence) == [2])
  }

  @Test mutating func eachPartitionIsReleasedAtAnotherMoment() {
    var state = PumpState(PumpPolicy(.whenDue(delay: .seconds(300))))
    let partitions = [0, 2].map { TopicPartition(topic: Self.partition.topic, partition: $0) }
    _ = state.advance(.event(.assigned(partitions, Rebalance {})), at: Self.moment(0))
    let due = records([101, 101]).enumerated().map { record(Array($1.value), at: 0, of: $0 == 0 ? 0 : 2) }
    _ = state.advance(.event(.records(due)), at: Self.moment(0))
    #expect(state.advance(.tick, at: Self.moment(102)).due.map(\.origin.slot) == [1])
    #expect(state.advance(.tick, at: Self.moment(105)).due.map(\.origin.slot) == [0])
  }

  @Test mutating func earlyRecordIsHeldForItsTimeHoweverWrongTheClockIs() {
    // This pump's clock is an hour ahead of the writer's: on its own word it would give the record back at once, again
    // and again.
    func ahead(_ seconds: Int) -> Moment {
      Moment(wall: Self.start + .seconds(3600 + seconds), uptime: Int64(seconds) * 1000)
    }
    #expect(state.advance(.event(.records(records([10]))), at: ahead(0)).due.count == 1)
    #expect(state.advance(.event(.records(records([10], from: 1, cameEarly: true))), at: ahead(0)).due.isEmpty)
    #expect(state.advance(.tick, at: ahead(9)).due.isEmpty)
    #expect(state.advance(.tick, at: ahead(10)).due.count == 1)
  }

  @Test mutating func onlyWhatKafkaHasIsCommittedAndOnlyWithoutGaps() {
    _ = advance(.event(.records(records([15, 5]))), at: 0)
    let second = advance(.tick, at: 5).due
    _ = advance(.acknowledged([(second[0], nil)]), at: 5)
    #expect(committed.map(\.offset) == [0])
    let first = advance(.tick, at: 15).due
    _ = advance(.acknowledged([(first[0], nil)]), at: 15)
    #expect(committed.map(\.offset) == [0, 2])
    #expect(state.held == 0)
  }

  @Test mutating func nextOwnerSkipsTheRecordsThatCameBackOutOfOrder() throws {
    let records = records([15, 5])
    _ = advance(.event(.records(records)), at: 0)
    let second = advance(.tick, at: 5).due
    _ = advance(.acknowledged([(second[0], nil)]), at: 5)
    found = committed
    state = PumpState(PumpPolicy(.whenDue(delay: .seconds(20))))
    _ = advance(.event(.assigned([Self.partition], Rebalance {})), at: 6)
    _ = advance(.event(.records(records)), at: 6)
    #expect(state.held == 1)
    #expect(advance(.tick, at: 15).due.map(\.place.offset) == [0])
  }

  @Test mutating func partitionIsReadWithoutTheGroupsAnswerAfterAWhile() {
    state = PumpState(PumpPolicy(.whenDue(delay: .seconds(20))))
    let assigned = state.advance(.event(.assigned([Self.partition], Rebalance {})), at: Self.moment(0))
    #expect(assigned.group.recoveries.count == 1 && assigned.group.completions.isEmpty)
    #expect(state.advance(.tick, at: Self.moment(5)).group.completions.count == 1)
  }

  @Test mutating func recordRefusedByKafkaIsReleasedAgain() {
    let due = state.advance(.event(.records(records([0]))), at: Self.moment(0)).due
    #expect(due.count == 1)
    _ = advance(.acknowledged([(due[0], Self.transient)]), at: 0)
    #expect(committed.isEmpty)
    #expect(state.advance(.tick, at: Self.moment(1)).due.count == 1)
  }

  @Test mutating func recordThatSendsNeverTakesIsDeadLetteredAndPassed() throws {
    var due = state.advance(.event(.records(records([0, 0]))), at: Self.moment(0)).due
    #expect(due.count == 2)
    // The second is copied; the first comes again at once as a dead letter, then as one without its value.
    due = advance(.acknowledged([(due[0], Self.tooLarge), (due[1], nil)]), at: 0).due
    #expect(due.map(\.condemnation?.code) == [.messageTooLarge] && due.map(\.isShortened) == [false])
    due = state.advance(.acknowledged([(due[0], Self.transient)]), at: Self.moment(0)).due
    #expect(due.isEmpty, "Kafka is out of order: it waits")
    due = state.advance(.tick, at: Self.moment(1)).due
    due = state.advance(.acknowledged([(due[0], Self.tooLarge)]), at: Self.moment(1)).due
    #expect(due.map(\.isShortened) == [true])
    _ = advance(.acknowledged([(due[0], nil)]), at: 3)
    #expect(committed.last?.offset == 2)
    #expect(state.held == 0)
  }

  @Test mutating func unreadableRecordIsReleasedAtOnceForTheWorkerToDeadLetter() {
    #expect(state.advance(.event(.records([record(Array("junk".utf8), at: 0)])), at: Self.moment(0)).due.count == 1)
  }

  @Test mutating func noMoreIsAskedForThanMayBeHeld() {
    #expect(credit == 4)
    #expect(state.advance(.event(.records(records([15, 15, 15, 15]))), at: Self.moment(0)).credit == 0)
    let due = state.advance(.tick, at: Self.moment(15)).due
    #expect(state.advance(.acknowledged(due.map { ($0, nil) }), at: Self.moment(15)).credit == 4)
  }

  @Test mutating func revocationWaitsForCopiesInFlightAndForgetsTheRest() {
    let due = advance(.event(.records(records([0, 15]))), at: 0).due
    #expect(advance(.event(.revoked([Self.partition], Rebalance {})), at: 0).group.completions.isEmpty)
    let effects = state.advance(.acknowledged([(due[0], nil)]), at: Self.moment(0))
    #expect(effects.group.commit.map(\.offset) == [1] && effects.group.completions.isEmpty)
    let end = CommitEnd(offsets: effects.group.commit, error: nil)
    #expect(state.advance(.committed(end), at: Self.moment(0)).group.completions.count == 1)
    #expect(state.held == 0)
  }

  @Test mutating func revocationDoesNotWaitForACommitForEver() {
    let due = advance(.event(.records(records([0]))), at: 0).due
    _ = advance(.event(.revoked([Self.partition], Rebalance {})), at: 0)
    #expect(state.advance(.acknowledged([(due[0], nil)]), at: Self.moment(0)).group.completions.isEmpty)
    #expect(state.advance(.tick, at: Self.moment(2)).group.completions.count == 1)
  }

  @Test mutating func lateDrainLeavesTheNextAssignmentAlone() {
    _ = advance(.event(.records(records([0]))), at: 0)
    #expect(advance(.event(.revoked([Self.partition], Rebalance {})), at: 0).group.completions.isEmpty)
    // A process that was stopped for long hears of both at once.
    #expect(advance(.event(.assigned([Self.partition], Rebalance {})), at: 0).group.completions.count == 1)
    #expect(advance(.tick, at: 2).group.completions.count == 1)
    #expect(advance(.event(.records(records([0]))), at: 2).due.count == 1)
  }

  @Test func topicInOrderStaysInOrderWhenCopiesFail() {
    var state = PumpState(PumpPolicy(.asWritten))
    _ = state.advance(.event(.assigned([Self.partition], Rebalance {})), at: Self.moment(0))
    func offsets(_ effects: PumpState.Effects) -> [Int64] { effects.due.map(\.place.offset) }
    let plain = (0..<5).map { record(Array("x".utf8), at: $0) }
    let first = state.advance(.event(.records(Array(plain[..<3]))), at: Self.moment(0))
    #expect(offsets(first) == [0, 1, 2])
    // Those that come later wait for the batch.
    #expect(offsets(state.advance(.event(.records(Array(plain[3...]))), at: Self.moment(0))) == [])
    let answers = zip(first.due, [nil, Self.transient, nil]).map { (held: $0, error: $1) }
    let answered = state.advance(.acknowledged(answers), at: Self.moment(0))
    #expect(offsets(answered) == [] && answered.group.commit.map(\.offset) == [1] && answered.settled.count == 1)
    _ = state.advance(.committed(CommitEnd(offsets: answered.group.commit, error: nil)), at: Self.moment(0))
    let second = state.advance(.tick, at: Self.moment(1))
    #expect(offsets(second) == [1, 2, 3, 4])
    // A dead letter takes the place of a record that Kafka will never take.
    let third = state.advance(.acknowledged(second.due.map { ($0, Self.tooLarge) }), at: Self.moment(1))
    #expect(offsets(third) == [1, 2, 3, 4])
    #expect(third.due.map { $0.condemnation != nil } == [true, false, false, false])
    let last = state.advance(.acknowledged(third.due.map { ($0, nil) }), at: Self.moment(1))
    #expect(last.group.commit.map(\.offset) == [5])
  }

  @Test mutating func shutdownWaitsForCopiesInFlightButNotForEver() {
    _ = advance(.event(.records(records([0]))), at: 0)
    #expect(!advance(.shutDown, at: 0).group.isToLeave)
    #expect(advance(.tick, at: 2).group.isToLeave)
  }
}
