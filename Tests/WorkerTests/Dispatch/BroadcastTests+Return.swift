import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// Deferred records of a broadcast are readmitted and pushed again.
extension BroadcastTests {
  @Test func deferredPageRecordRestsNoLongerThanItsPage() {
    var desk = Desk(retryDelays: [2, 15])
    let record = StoppedRoomTests.page(&desk, devices: 20)
    desk.deliver([record.encoded(at: desk.wall)])
    desk.answer(
      desk.pushes[0], PushOutcome(.retryLater, reason: "TooManyRequests", status: 429, retryAfter: .seconds(3)))
    desk.answerAll(from: 1)
    #expect(desk.retries.count == 1 && desk.held.records == 0)
  }

  @Test func crashRepeatsAtMostAPageOfReadmittedRecords() {
    var desk = Desk(retryDelays: [2, 15]) { $0.broadcasts.pageDevices = 50 }
    let records = (0..<8).map { StoppedRoomTests.page(&desk, number: $0, devices: 40).encoded(at: desk.wall) }
    desk.deliver(records)
    // One record, and the head start of the next.
    #expect(desk.pushes.count == 50)
    var answered = 0
    for _ in 0..<400 {
      while answered < desk.pushes.count {
        #expect(desk.held.devices <= 50)
        desk.answer(desk.pushes[answered], PushOutcome(.accepted, status: 200))
        answered += 1
      }
      // Records without room even to wait are deferred again, and come back.
      for retry in desk.retries { desk.deliver([retry.value]) }
      desk.retries = []
      desk.advance(.milliseconds(500))
    }
    #expect(desk.pushes.count == 320 && desk.statuses.count == 8 && desk.held.records == 0)
  }

  @Test func pageRecordForStoppedServiceIsDeferredAgainAtOnce() {
    var desk = Desk(retryDelays: [2, 15]) { $0.broadcasts.pageDevices = 50 }
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], PushOutcome(.configurationError, reason: "BadTopic", status: 400))
    desk.deliver((0..<8).map { StoppedRoomTests.page(&desk, number: $0, devices: 40).encoded(at: desk.wall) })
    #expect(
      desk.retries.count == 8 && desk.held.records == 1 && desk.held.devices == 1)
  }

  @Test func readmittedRecordKeepsItsRate() {
    var desk = Desk(retryDelays: [2, 15])
    let record = StoppedRoomTests.page(&desk, devices: 200, rate: 20)
    desk.deliver([record.encoded(at: desk.wall)])
    var returned = 0
    for step in 0..<1200 {
      Self.answerAll(&desk)
      for value in desk.retries[returned...].map(\.value) {
        guard let retry = try? RetryRecord.decode(value[...], recordTime: desk.wall), retry.notBefore <= desk.wall
        else { break }
        desk.deliver([value])
        returned += 1
      }
      #expect(desk.pushes.count <= 21 + step)
      desk.advance(.milliseconds(50))
    }
    #expect(desk.pushes.count == 200 && Set(desk.pushes.map(\.handle)).count == 200)
    #expect(desk.statuses.count == 1 && desk.statuses[0].devices.count == 200)
  }

  /// A send whose plan is known, and whose segments are all durable or not.
  private static func planned(_ desk: Desk, timeToLive: Int?, isAnnounced: Bool) -> (BroadcastDesk, SendRequest) {
    var desk = desk
    let send = divided(&desk, timeToLive: timeToLive)
    if !isAnnounced { desk.broadcasts.announced = [] }
    return (desk.broadcasts, send)
  }

  @Test(arguments: [true, false]) func expiredPlannedBroadcastIsLeftToItsPages(isAnnounced: Bool) throws {
    let (broadcasts, send) = Self.planned(Self.desk(devices: 200), timeToLive: 60, isAnnounced: isAnnounced)
    var other = Self.desk(devices: 200)
    other.broadcasts = broadcasts
    other.wall = other.wall + .seconds(61)
    other.deliver(send)
    #expect(other.statuses.isEmpty && other.position == 1)
    #expect(other.segments.map(\.range.count).reduce(0, +) == (isAnnounced ? 0 : send.pages(in: other)))
  }

  @Test(arguments: [true, false]) func plannedBroadcastIsNotDispatchedInOnePieceToo(isAnnounced: Bool) throws {
    let (broadcasts, send) = Self.planned(Self.desk(devices: 200), timeToLive: nil, isAnnounced: isAnnounced)
    // Most devices are gone meanwhile.
    var other = Self.desk(devices: 10)
    other.broadcasts = broadcasts
    other.deliver(send)
    #expect(other.pushes.isEmpty && other.statuses.isEmpty && other.position == 1)
    #expect(other.segments.map(\.range.count).reduce(0, +) == (isAnnounced ? 0 : send.pages(in: other)))
  }

  /// A worker of another release, which divides otherwise, has planned it and died before all segments were durable.
  @Test func broadcastIsDividedAsItsPlanSays() throws {
    var (broadcasts, send) = Self.planned(Self.desk(devices: 200), timeToLive: nil, isAnnounced: false)
    let broadcast = try #require(broadcasts.plans.keys.first)
    (broadcasts.plans[broadcast], broadcasts.segments[broadcast]) = (20, 3)
    var other = Self.desk(devices: 200)
    other.broadcasts = broadcasts
    other.deliver(send)
    #expect(other.segments.map(\.range.count).sorted() == [6, 7, 7])
  }
}
