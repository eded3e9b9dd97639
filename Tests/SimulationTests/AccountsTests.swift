import FanfareCore
import RDKafka
import Testing

@testable import Simulation

/// A check that finds nothing must be one that can find something.
struct AccountsTests {
  private let world = World(seed: 1, trace: Trace())
  private let topics = Topics(prefix: "t")
  private let partition = TopicPartition(topic: "t.sends", partition: 0)
  private let accounts: Accounts
  private let send: SendRequest

  init() {
    accounts = Accounts(in: world, topics: topics, keepsOrder: true)
    send = Self.send(1, at: world.wall)
    post(send)
  }

  private static func send(_ number: UInt64, at now: UnixTime) -> SendRequest {
    SendRequest(
      id: SendID(high: 1, low: number), acceptedAt: now, audience: .user("bob"),
      content: Content(message: Message(body: "hello")))
  }

  private func post(_ send: SendRequest) {
    accounts.post(send)
    accounts.accept(send.id)
    // The sends are numbered from 1.
    append(send.encoded(), to: partition, at: Int64(send.id.low) - 1)
  }

  private func append(
    _ value: [UInt8], to partition: TopicPartition, at offset: Int64 = 0, by writer: String = ""
  ) {
    accounts.appended(partition, offset, SimulatedCluster.Stored(key: nil, value: value, timestamp: 0, writer: writer))
  }

  private func settle(_ send: SendRequest, by writer: String = "") {
    let status = StatusRecord(
      send: send.id, hub: send.hub, state: .settled, sender: nil, audience: send.audience,
      acceptedAt: send.acceptedAt, settledAt: world.wall, devices: [])
    append(status.encoded(), to: TopicPartition(topic: "t.status", partition: 0), by: writer)
  }

  private func push(_ send: SendRequest, expiresAt: UnixTime, to handle: String = "h") -> Push {
    Push(
      ticket: 1, id: PushID(send: send.id, registration: RegistrationID(high: 1, low: 1)), handle: handle,
      rendering: RenderedPush(headers: [], body: Array("\(send.id)".utf8)), expiresAt: expiresAt)
  }

  /// A process defers the send. Returns the record.
  @discardableResult
  private func deferPart(by process: String) -> [UInt8] {
    let device = RetryRecord.Waiting(
      registration: RegistrationID(high: 1, low: 1), platform: .apns, notBefore: world.wall, attempts: 1,
      heldAttempts: 0, waits: 1, wasUnanswered: false, firstAttemptAt: nil, reason: "", status: 0)
    let part = RetryRecord(send: send, part: 0, parts: 1, attempt: nil, deferrals: 1, devices: [.waiting(device)])
      .encoded(at: world.wall)
    append(part, to: TopicPartition(topic: topics.retries[0].name, partition: 0), by: process)
    return part
  }

  /// Whether the process that copied it is in trouble before its commit, and how long that was not possible.
  @Test(arguments: [(true, Int64(0)), (false, 0), (false, 8), (true, 8)])
  func deferredPartThatComesBackTwiceIsFound(isInTrouble: Bool, seconds: Int64) {
    accounts.retriesTakeCommits = { $0 + .seconds(seconds) }
    let part = deferPart(by: "w1")
    append(part, to: partition, at: 1, by: "w1")
    world.run(until: .seconds(seconds))
    if isInTrouble { accounts.troubled("w1") }
    world.run(until: .seconds(20))
    append(part, to: partition, at: 2, by: "w2")
    #expect(found.isEmpty == isInTrouble, "\(found)")
  }

  @Test(arguments: [false, true]) func partThatWasDeferredOrCopiedInDoubtMayComeBackAgain(isInDoubt: Bool) {
    let part = deferPart(by: "w1")
    if isInDoubt {
      accounts.doubted(partition, SimulatedCluster.Stored(key: nil, value: part, timestamp: 0, writer: "w1"))
    } else {
      deferPart(by: "w2")
    }
    for offset in 1...2 as ClosedRange<Int64> { append(part, to: partition, at: offset, by: "w1") }
    #expect(found.isEmpty)
    append(part, to: partition, at: 3, by: "w1")
    #expect(found.count == 1)
  }

  private var found: [String] { accounts.violations.map(\.text) }

  @Test func commitBeyondUnsettledRecordIsFound() {
    accounts.committed("g", PartitionOffset(partition: partition, offset: 1), nil)
    #expect(found.count == 1 && found.first?.contains("has left nothing") == true)
  }

  @Test func commitAfterStatusIsFine() {
    settle(send)
    accounts.committed("g", PartitionOffset(partition: partition, offset: 1), nil)
    #expect(found.isEmpty && accounts.isSettled)
  }

  @Test func commitBeyondTheEndIsFound() {
    settle(send)
    accounts.committed("g", PartitionOffset(partition: partition, offset: 2), nil)
    #expect(found.count == 1 && found.first?.contains("beyond its end") == true)
  }

  @Test func lostSendIsFound() {
    accounts.finish(mayRepeat: true, longest: nil)
    #expect(found.count == 1 && found.first?.contains("has no end") == true)
  }

  @Test func sendThatItsLogHasLostNeedNotEnd() {
    let later = Self.send(2, at: world.wall)
    post(later)
    let record = SimulatedLog.Record(key: nil, value: send.encoded(), timestamp: 0)
    accounts.lost(partition, [SimulatedLog.Entry(offset: 0, epoch: 0, batch: 1, record: record)], isEnd: false)
    accounts.finish(mayRepeat: true, longest: nil)
    // The other one is still in the log.
    #expect(found.count == 1 && found.first?.contains("\(later.id)") == true)
  }

  @Test func slowSendToOneUserIsFound() {
    settle(send)
    world.run(until: .seconds(11))
    let later = Self.send(2, at: world.wall)
    post(later)
    world.run(until: .milliseconds(11_600))
    settle(later)
    accounts.finish(mayRepeat: false, longest: .seconds(60))
    #expect(found == ["a send to one user has taken 600 ms"])
  }

  @Test func expiredPushIsFound() {
    accounts.handedOver(push(send, expiresAt: world.wall), by: "w", at: world.wall)
    #expect(found.count == 1 && found.first?.contains("after its expiry") == true)
  }

  @Test func pushOutOfOrderIsFound() {
    let later = Self.send(2, at: world.wall)
    post(later)
    let expiry = world.wall + .seconds(60)
    accounts.handedOver(push(later, expiresAt: expiry), by: "w", at: world.wall)
    accounts.handedOver(push(send, expiresAt: expiry), by: "w", at: world.wall)
    #expect(found.count == 1 && found.first?.contains("after a later send") == true)
  }

  @Test func repetitionWithoutFaultIsFound() {
    let push = push(send, expiresAt: world.wall + .seconds(60))
    accounts.delivered(push, by: "apns")
    accounts.delivered(push, by: "apns")
    settle(send)
    accounts.finish(mayRepeat: false, longest: nil)
    #expect(found == ["1 pushes are repeated without a fault"])
  }

  @Test func repetitionLongAfterTheEndIsFound() {
    let push = push(send, expiresAt: world.wall + .seconds(3_600))
    accounts.handedOver(push, by: "w1", at: world.wall)
    settle(send, by: "w1")
    world.run(until: .seconds(10))
    accounts.troubled("w1")
    accounts.handedOver(push, by: "w2", at: world.wall)
    #expect(found.count == 1 && found.first?.contains("long after its end") == true)
  }

  @Test(arguments: [false, true]) func repetitionOfADeferredPartMayComeFromTrouble(isInTrouble: Bool) {
    let push = push(send, expiresAt: world.wall + .seconds(3_600))
    if isInTrouble { accounts.troubled("w1") }
    deferPart(by: "w1")
    accounts.handedOver(push, by: "w2", at: world.wall)
    settle(send)
    world.run(until: .seconds(10))
    accounts.handedOver(push, by: "w2", at: world.wall)
    #expect(found.isEmpty == isInTrouble, "\(found)")
  }
}
