import Synchronization
import Testing

@testable import RDKafka

struct InFlightTests {
  private let error = RDKafkaError(code: .possiblyPersisted, message: "gone")

  private func delivery(_ slot: Int, _ index: Int, offset: Int64, error: Int32 = 0) -> Delivery {
    Delivery(
      tag: DeliveryTag(slot: slot, index: index), partition: 2, offset: offset, bytes: 1, error: error,
      isPossiblyPersisted: false)
  }

  @Test func submissionEndsWhenLastRecordIsSettledAndSubmitterIsDone() throws {
    var inFlight = InFlight()
    let slot = inFlight.open([record("t", "a"), record("u", "b")], generation: 0) { _, _ in }
    let topic = inFlight.settle(delivery(slot, 1, offset: 7))
    #expect(topic == "u")
    inFlight.settle(delivery(slot, 0, offset: 6))
    #expect(inFlight.count == 0)
    let early = inFlight.takeFinished()
    #expect(early.isEmpty, "the submitter is still handing over")
    let isToBeTaken = inFlight.handedOver(slot, refused: [])
    #expect(isToBeTaken, "no delivery will tell of it any more")
    let finished = inFlight.takeFinished()
    let results = try #require(finished.first?.results)
    #expect(
      try results.map { try $0.get() } == [
        RecordPosition(topic: "t", partition: 2, offset: 6),
        RecordPosition(topic: "u", partition: 2, offset: 7),
      ])
    let late = inFlight.takeFinished()
    #expect(late.isEmpty)
  }

  @Test func secondDeliveryOfARecordIsIgnored() {
    var inFlight = InFlight()
    let slot = inFlight.open([record("t", "a"), record("t", "b")], generation: 0) { _, _ in }
    _ = inFlight.handedOver(slot, refused: [(0, error)])
    let second = inFlight.settle(delivery(slot, 0, offset: 1))
    #expect(second == nil)
    #expect(inFlight.count == 1)
    let stranger = inFlight.settle(delivery(99, 0, offset: 1))
    #expect(stranger == nil)
    inFlight.settle(delivery(slot, 1, offset: 1, error: -192))
    let finished = inFlight.takeFinished()
    #expect(finished.first?.results.map { failure($0)?.code } == [.possiblyPersisted, .notPersisted])
  }

  @Test func onlyAnOffsetIsAnAcknowledgement() throws {
    var inFlight = InFlight()
    let slot = inFlight.open([record("t", "a")], generation: 0) { _, _ in }
    _ = inFlight.handedOver(slot, refused: [])
    inFlight.settle(delivery(slot, 0, offset: -1001))
    let finished = inFlight.takeFinished()
    let error = try #require(finished.first?.results.first.flatMap { failure($0) })
    #expect(error.code == .possiblyPersisted)
    #expect(error.message == "t: the broker has only acknowledged a later record")
  }

  @Test func slotIsReused() {
    var inFlight = InFlight()
    let first = inFlight.open([record("t", "a")], generation: 0) { _, _ in }
    _ = inFlight.handedOver(first, refused: [(0, error)])
    let second = inFlight.open([record("t", "b")], generation: 0) { _, _ in }
    #expect(second == first)
  }

  @Test func onlyRecordsOfTheFailedHandleAreAbandoned() {
    var inFlight = InFlight()
    let old = inFlight.open([record("t", "a")], generation: 0) { _, _ in }
    let new = inFlight.open([record("t", "b")], generation: 1) { _, _ in }
    _ = inFlight.handedOver(new, refused: [])
    let abandoned = inFlight.abandon(upTo: 0, error: error)
    #expect(abandoned == 1)
    var isWaiting = inFlight.hasRecords(upTo: 0)
    #expect(isWaiting, "its submitter is still handing over")
    _ = inFlight.handedOver(old, refused: [])
    isWaiting = inFlight.hasRecords(upTo: 0)
    #expect(!isWaiting)
    #expect(inFlight.count == 1)
  }

  @Test(arguments: [nil, 0, 1, 65_534] as [Int32?], [0, 1, 16_777_215])
  func ticketFitsInOneWord(partition: Int32?, number: Int) {
    for tag in [
      DeliveryTag(slot: number, index: 12_345, partition: partition),
      DeliveryTag(slot: 54_321, index: number, partition: partition),
    ] {
      #expect(DeliveryTag(word: tag.word) == tag)
    }
  }

  @Test func threadIsWokenOnlyWhenCreditRanOut() {
    let credit = Credit()
    #expect(!credit.grant(5), "nobody waits yet")
    #expect(credit.available() == 5)
    credit.spend(5)
    #expect(credit.available() == 0)
    #expect(!credit.grant(0))
    #expect(credit.grant(1), "the thread waits")
    #expect(!credit.grant(1))
    #expect(credit.available() == 2)
    #expect(!credit.grant(-3), "more is taken back than there is")
    #expect(credit.available() == 0)
    #expect(credit.grant(2), "the thread waits")
    #expect(credit.available() == 1)
  }

  @Test func rebalanceCompletesOnceAlsoWhenReleased() {
    let count = Mutex(0)
    var token: Rebalance? = Rebalance { count.withLock { $0 += 1 } }
    token?.complete()
    token?.complete()
    token = nil
    #expect(count.withLock { $0 } == 1)
    _ = Rebalance { count.withLock { $0 += 1 } }
    #expect(count.withLock { $0 } == 2)
  }
}
