import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

struct CommitTests {
  private static let rebalancing = RDKafkaError(code: .rebalancing, message: "refused by the test")

  /// A desk at which the users' sends, one each, are with the service.
  private func desk(users: [String], configure: (inout WorkerConfiguration) -> Void = { _ in }) -> Desk {
    var desk = Desk(configure: configure)
    for user in users { desk.register(user, .fcm) }
    for user in users { desk.deliver(desk.send(to: .user(user))) }
    return desk
  }

  private func accept(_ number: Int, at desk: inout Desk) {
    desk.answer(desk.pushes[number], PushOutcome(.accepted), from: 1)
  }

  @Test func recordsSettledAboveFirstOpenAreCommittedAsMetadata() {
    var desk = desk(users: ["a", "b", "c"])
    accept(2, at: &desk)
    #expect(
      desk.group.mapValues(\.withRunsAlone) == [
        Desk.partition: PartitionOffset(partition: Desk.partition, offset: 0, metadata: "CB")
      ])
    accept(0, at: &desk)
    #expect(
      desk.group[Desk.partition]?.withRunsAlone
        == PartitionOffset(partition: Desk.partition, offset: 1, metadata: "BB"))
    accept(1, at: &desk)
    #expect(desk.group[Desk.partition] == PartitionOffset(partition: Desk.partition, offset: 3))
    #expect(desk.commits == 3)
  }

  @Test func commitsKeepIntervalAndRepeatNothing() {
    var desk = desk(users: ["a", "b", "c"]) { $0.times.commitInterval = .milliseconds(250) }
    accept(0, at: &desk)
    accept(1, at: &desk)
    #expect(desk.position == 1)
    desk.advance(.milliseconds(200))
    #expect(desk.position == 1)
    desk.advance(.milliseconds(50))
    #expect(desk.position == 2)
    desk.advance(.seconds(10))
    #expect(desk.commits == 2)
  }

  /// The group does not subscribe to the segments topic: a broker deletes positions there that are not committed again.
  @Test func positionsOfSegmentsAreCommittedAgainEveryHour() {
    var desk = Desk()
    let (known, fresh) = (
      TopicPartition(topic: "fanfare.segments", partition: 0), TopicPartition(topic: "fanfare.segments", partition: 1)
    )
    desk.group = [
      known: PartitionOffset(partition: known, offset: 7),
      Desk.partition: PartitionOffset(partition: Desk.partition, offset: 2),
    ]
    desk.assign([known, fresh])
    desk.advance(.seconds(59))
    #expect(desk.commits == 0)
    desk.answersCommits = false
    for delay in [1, 3600, 3600] {
      desk.advance(.seconds(delay))
      #expect(desk.openCommit == [PartitionOffset(partition: known, offset: 7)])
      desk.answerCommit()
    }
  }

  @Test func oneCommitAtATimeAndNextHasNewest() {
    var desk = desk(users: ["a", "b", "c"])
    desk.answersCommits = false
    for number in 0..<3 { accept(number, at: &desk) }
    #expect(desk.commits == 1)
    #expect(desk.openCommit.map(\.offset) == [1])
    desk.answerCommit()
    #expect(desk.openCommit.map(\.offset) == [3])
  }

  @Test func failedCommitIsRepeatedWithTheNext() {
    var desk = desk(users: ["a", "b"]) { $0.times.commitInterval = .milliseconds(250) }
    desk.answersCommits = false
    accept(0, at: &desk)
    desk.answerCommit(RDKafkaError(code: .unreachable, message: "refused by the test"))
    #expect(desk.openCommit.isEmpty)
    desk.advance(.milliseconds(250))
    #expect(desk.openCommit.map(\.offset) == [1])
  }

  /// The source keeps them for the next owner, in case this worker dies before the group settles.
  @Test func positionsThatGroupRefusesAreCommittedAgainAtTheInterval() {
    var desk = desk(users: ["a", "b"]) { $0.times.commitInterval = .milliseconds(250) }
    desk.answersCommits = false
    accept(0, at: &desk)
    desk.answerCommit(Self.rebalancing)
    accept(1, at: &desk)
    desk.advance(.milliseconds(200))
    #expect(desk.openCommit.isEmpty)
    desk.advance(.milliseconds(50))
    #expect(desk.openCommit.map(\.offset) == [2])
    desk.answerCommit(Self.rebalancing)
    desk.advance(.milliseconds(250))
    #expect(desk.openCommit.map(\.offset) == [2])
  }

  @Test func newAssignmentCommitsRefusedPositionsAtOnce() {
    var desk = desk(users: ["a", "b"]) { $0.times.commitInterval = .seconds(60) }
    desk.answersCommits = false
    accept(0, at: &desk)
    desk.answerCommit(Self.rebalancing)
    #expect(desk.openCommit.isEmpty)
    desk.assign([])
    #expect(desk.openCommit.map(\.offset) == [1])
  }

  @Test func commitsAfterNumberOfRecords() {
    var desk = desk(users: ["a", "b", "c", "d"]) {
      $0.times.commitInterval = .seconds(60)
      $0.limits.commitRecords = 2
    }
    accept(0, at: &desk)
    #expect(desk.position == 1)
    accept(1, at: &desk)
    #expect(desk.position == 1)
    accept(2, at: &desk)
    #expect(desk.position == 3)
    desk.answersCommits = false
    accept(3, at: &desk)
    #expect(desk.openCommit.isEmpty)
  }

  /// An unreachable broker must not be asked in a loop.
  @Test func failedCommitIsNotRepeatedByNumberOfRecords() {
    var desk = desk(users: ["a", "b", "c"]) {
      $0.times.commitInterval = .seconds(60)
      $0.limits.commitRecords = 1
    }
    desk.answersCommits = false
    accept(0, at: &desk)
    desk.answerCommit(RDKafkaError(code: .unreachable, message: "refused by the test"))
    accept(1, at: &desk)
    accept(2, at: &desk)
    #expect(desk.openCommit.isEmpty)
    desk.advance(.seconds(60))
    #expect(desk.openCommit.map(\.offset) == [3])
  }

  @Test func metadataTooLongForBrokerIsShortened() {
    var desk = desk(users: (0..<9).map { "user\($0)" }) { $0.limits.commitMetadataBytes = 44 }
    desk.answersCommits = false
    for number in [1, 3, 5, 7] { accept(number, at: &desk) }
    let refusal = RDKafkaError(code: .messageTooLarge, message: "refused by the test")
    desk.answerCommit()
    #expect(desk.openCommit.first?.settledRuns == "BBBBBBBB")
    desk.answerCommit(refusal)
    desk.advance(.milliseconds(50))
    #expect(desk.openCommit == [PartitionOffset(partition: Desk.partition, offset: 0)])
    desk.answerCommit()
    #expect(desk.openCommit.isEmpty)
  }

  @Test func revocationCommitsAtOnceAndAgainWhatSettlesMeanwhile() {
    let completions = Completions()
    var desk = desk(users: ["a", "b", "c"]) { $0.times.commitInterval = .seconds(60) }
    accept(0, at: &desk)
    accept(1, at: &desk)
    #expect(desk.position == 1)
    desk.answersCommits = false
    desk.revoke([Desk.partition], completions.rebalance())
    #expect(desk.openCommit.map(\.offset) == [2])
    accept(2, at: &desk)
    desk.answerCommit()
    #expect(completions.count == 0)
    #expect(desk.openCommit.map(\.offset) == [3])
    desk.answerCommit()
    #expect(completions.count == 1)
    #expect(desk.position == 3)
    #expect(desk.dispatcher.partitions.offsets.partitions.isEmpty)
  }

  @Test(arguments: [rebalancing, RDKafkaError(code: .unreachable, message: "refused by the test")])
  func partitionsAreReleasedWhenLastCommitFails(error: RDKafkaError) {
    let completions = Completions()
    var desk = desk(users: ["a"]) { $0.times.commitInterval = .seconds(60) }
    desk.answersCommits = false
    desk.revoke([Desk.partition], completions.rebalance())
    accept(0, at: &desk)
    #expect(completions.count == 0)
    desk.answerCommit(error)
    #expect(completions.count == 1)
    #expect(desk.openCommit.isEmpty)
    #expect(desk.positionsLeft == [[Desk.partition]])
    #expect(desk.workLeft.isEmpty)
  }

  @Test func lastSettledBeforeRevocationIsCommittedDespiteRefusal() {
    let completions = Completions()
    var desk = desk(users: ["a", "b"])
    desk.answersCommits = false
    accept(0, at: &desk)
    desk.answerCommit(Self.rebalancing)
    desk.revoke([Desk.partition], completions.rebalance())
    #expect(desk.openCommit.map(\.offset) == [1])
    desk.answerCommit(Self.rebalancing)
    desk.advance(.milliseconds(500))
    #expect(desk.openCommit.map(\.offset) == [1])
    #expect(completions.count == 0)
    accept(1, at: &desk)
    desk.answerCommit(Self.rebalancing)
    #expect(desk.openCommit.map(\.offset) == [2])
    #expect(completions.count == 0)
    desk.answerCommit()
    #expect(completions.count == 1)
    #expect(desk.positionsLeft.isEmpty)
  }

  @Test func partitionsAreReleasedWhenCommitIsNotAnsweredInTime() {
    let completions = Completions()
    var desk = desk(users: ["a", "b"])
    desk.answersCommits = false
    accept(0, at: &desk)
    desk.revoke([Desk.partition], completions.rebalance())
    accept(1, at: &desk)
    desk.advance(.milliseconds(4_499))
    #expect(completions.count == 0)
    #expect(desk.positionsLeft.isEmpty)
    desk.advance(.milliseconds(1))
    #expect(completions.count == 1)
    #expect(desk.positionsLeft == [[Desk.partition]])
    // Its end is of no interest any more.
    desk.answerCommit(Self.rebalancing)
    #expect(desk.openCommit.isEmpty)
  }

  @Test func workerLeavesOnlyAfterLastCommit() {
    var desk = desk(users: ["a"]) { $0.times.commitInterval = .seconds(60) }
    desk.answersCommits = false
    accept(0, at: &desk)
    desk.shutDown()
    #expect(desk.isToLeave == false)
    // The commit that was under way, and the last one.
    desk.answerCommit(Self.rebalancing)
    desk.answerCommit(Self.rebalancing)
    desk.advance(.milliseconds(4_900))
    #expect(desk.isToLeave == false)
    desk.advance(.milliseconds(100))
    #expect(desk.isToLeave == true)
  }

  /// Kafka is away: neither a commit nor a status record is answered.
  @Test func workerLeavesWithoutAnswerOfLastCommit() {
    var desk = desk(users: ["a"]) { $0.times.commitInterval = .seconds(60) }
    desk.answersCommits = false
    accept(0, at: &desk)
    desk.shutDown()
    desk.advance(.milliseconds(4_900))
    #expect(desk.isToLeave == false)
    desk.advance(.milliseconds(100))
    #expect(desk.isToLeave == true)
  }

  @Test func workerDoesNotWaitLongForStatusesThatNobodyAcknowledges() {
    var desk = desk(users: ["a", "b"])
    desk.acknowledges = false
    accept(0, at: &desk)
    accept(1, at: &desk)
    desk.shutDown()
    desk.advance(.milliseconds(4_900))
    #expect(desk.isToLeave == false)
    desk.advance(.milliseconds(100))
    #expect(desk.isToLeave == true)
  }

  /// A push may be answered until the end of the time for draining.
  @Test func workerWaitsForPushes() {
    var desk = desk(users: ["a", "b"])
    desk.shutDown()
    desk.advance(.milliseconds(5_100))
    #expect(desk.isToLeave == false)
    accept(0, at: &desk)
    accept(1, at: &desk)
    #expect(desk.isToLeave == true)
    #expect(desk.position == 2)
  }

  @Test func refusedWorkerCommitsOnceMoreAndLeaves() {
    var desk = desk(users: ["a"])
    desk.answersCommits = false
    accept(0, at: &desk)
    desk.shutDown()
    desk.answerCommit(Self.rebalancing)
    desk.assign([])
    #expect(desk.isToLeave == false)
    desk.answerCommit()
    #expect(desk.isToLeave == true)
    #expect(desk.position == 1)
  }

  @Test func recordsSettledByEarlierOwnerAreNotRepeated() {
    let completions = Completions()
    var desk = Desk(assign: false)
    desk.group[Desk.partition] = PartitionOffset(Desk.partition, 0, settled: "BC")
    desk.assign([Desk.partition], completions.rebalance())
    #expect(completions.count == 1)
    for user in ["a", "b", "c", "d"] { desk.register(user, .fcm) }
    for user in ["a", "b", "c", "d"] { desk.deliver(desk.send(to: .user(user))) }
    #expect(desk.pushes.map(\.handle) == ["a-0", "d-0"])
    #expect(desk.tallies.reduce(0) { $0 + $1.skipped } == 2)
    desk.answerAll()
    #expect(desk.position == 4)
    #expect(desk.held.records == 0)
  }

  @Test func refusedPositionsOfEarlierOwnerAreNotRepeated() {
    var desk = Desk(assign: false)
    desk.group[Desk.partition] = PartitionOffset(Desk.partition, 0, settled: "FB")
    desk.kept[Desk.partition] = PartitionOffset(Desk.partition, 2, settled: "BB")
    desk.assign([Desk.partition])
    let users = ["a", "b", "c", "d", "e", "f"]
    for user in users { desk.register(user, .fcm) }
    for user in users { desk.deliver(desk.send(to: .user(user))) }
    #expect(desk.pushes.map(\.handle) == ["c-0", "e-0"])
    desk.answerAll()
    #expect(desk.position == 6)
  }

  @Test func partitionsWaitForRecoveryUntilDeadline() {
    let completions = Completions()
    var desk = Desk(assign: false)
    desk.answersResumptions = false
    desk.group[Desk.partition] = PartitionOffset(Desk.partition, 0, settled: "BC")
    desk.assign([Desk.partition], completions.rebalance())
    desk.advance(.milliseconds(4_999))
    #expect(completions.count == 0)
    #expect(desk.alarms.isEmpty)
    desk.advance(.milliseconds(1))
    #expect(completions.count == 1)
    guard case .recoveryTimedOut([Desk.partition])? = desk.alarms.first else {
      Issue.record("no alarm names the partition: \(desk.alarms)")
      return
    }
    // The word comes too late: work may have begun.
    desk.answerResumption()
    for user in ["a", "b"] { desk.register(user, .fcm) }
    for user in ["a", "b"] { desk.deliver(desk.send(to: .user(user))) }
    #expect(desk.pushes.count == 2)
  }

  @Test func unansweredRecoveryRepeatsEverything() {
    let completions = Completions()
    var desk = Desk(assign: false)
    desk.answersResumptions = false
    desk.assign([Desk.partition], completions.rebalance())
    desk.answerResumption(fails: true)
    #expect(completions.count == 1)
    desk.register("a", .fcm)
    desk.deliver(desk.send(to: .user("a")))
    #expect(desk.pushes.count == 1)
  }
}
