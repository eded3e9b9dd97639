import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// Segments of more pages than are in hand at a time.
extension BroadcastTests {
  /// A segment of all of a broadcast to `news`.
  private static func segment(_ desk: Desk, pages: Int, timeToLive: Int? = nil) -> SegmentRecord {
    let send = SendRequest(
      id: .random(), sender: "tester", acceptedAt: desk.wall, audience: .tag("news"),
      content: Content(message: Message(body: "hello")), timeToLive: timeToLive)
    return SegmentRecord(send: send, pages: pages, range: 0..<pages)
  }

  /// A record of a few hundred bytes stands for any number of pages.
  @Test(arguments: [1, 3]) func expiredSegmentsEndAFewPagesAtATime(segments: Int) {
    var desk = Self.desk(devices: 20)
    desk.acknowledges = false
    let records = (0..<segments).map { _ in Self.segment(desk, pages: 1_000_000, timeToLive: 0).encoded(at: desk.wall) }
    desk.deliver(records, from: Self.partition)
    for turn in 1...4 {
      #expect(desk.unacknowledged.count == 1, "one record for the segment's pages in hand")
      desk.turn()
      #expect(desk.unacknowledged.count == 1)
      desk.acknowledge()
      #expect(desk.statuses.count == SegmentWalk.mostPages * turn)
    }
    #expect(desk.broadcasts.finished.values.reduce(0) { $0 + $1.count } == SegmentWalk.mostPages * 4)
    #expect(desk.group[Self.partition] == nil && desk.pushes.isEmpty)
  }

  /// Small ones need not wait for one another.
  @Test func manySegmentsEndTogether() {
    var desk = Self.desk(devices: 20)
    desk.acknowledges = false
    let records = (0..<30).map { _ in Self.segment(desk, pages: 40, timeToLive: 0).encoded(at: desk.wall) }
    desk.deliver(records, from: Self.partition)
    #expect(desk.unacknowledged.count == SegmentWalk.mostPages / 40)
    desk.acknowledge()
    desk.acknowledge()
    #expect(desk.statuses.count == 1200 && desk.group[Self.partition]?.offset == 30)
  }

  @Test(arguments: [false, true]) func segmentOfManyPagesEndsWithItsLast(isCancelled: Bool) {
    var desk = Self.desk(devices: 20)
    let pages = SegmentWalk.mostPages * 2 + 1
    let segment = Self.segment(desk, pages: pages, timeToLive: isCancelled ? nil : 0)
    let broadcast = BroadcastID(hub: segment.send.hub, send: segment.send.identity)
    if isCancelled { desk.broadcasts.controls[broadcast] = BroadcastControl(.cancelled, because: .caller) }
    desk.deliver([segment.encoded(at: desk.wall)], from: Self.partition)
    #expect(desk.statuses.allSatisfy { $0.state == (isCancelled ? .cancelled : .expired) })
    #expect(desk.statuses.map(\.part).sorted() == Array(0..<pages))
    #expect(desk.broadcasts.finished[broadcast]?.count == pages)
    #expect(
      desk.group[Self.partition]?.offset == 1 && desk.held.records == 0
        && desk.held.segments == 0)
  }

  /// The pages finished before lie between those taken in hand, and at their end.
  @Test func segmentOfManyPagesIsPushedToItsLast() {
    var desk = Self.desk(devices: 200)
    let most = SegmentWalk.mostPages
    let segment = Self.segment(desk, pages: most * 4)
    let broadcast = BroadcastID(hub: segment.send.hub, send: segment.send.identity)
    let left = [0, most - 1, most, most * 3 - 1, most * 3, most * 3 + 1]
    desk.broadcasts.finished[broadcast] = Set(segment.range).subtracting(left)
    desk.deliver([segment.encoded(at: desk.wall)], from: Self.partition)
    Self.answerAll(&desk)
    #expect(desk.statuses.map(\.part) == left)
    #expect(desk.group[Self.partition]?.offset == 1 && desk.held.segments == 0)
  }

  @Test func pagesThatEndUnpushedHaveOneRecordForEachRun() {
    var desk = Self.desk(devices: 20)
    let segment = Self.segment(desk, pages: 100, timeToLive: 0)
    let broadcast = BroadcastID(hub: segment.send.hub, send: segment.send.identity)
    desk.broadcasts.finished[broadcast] = [0, 1, 40, 99]
    desk.acknowledges = false
    desk.deliver([segment.encoded(at: desk.wall)], from: Self.partition)
    #expect(desk.unacknowledged.count == 2)
    desk.acknowledge()
    #expect(desk.statuses.map(\.part) == Array(2..<40) + Array(41..<99))
    #expect(desk.statuses.allSatisfy { $0.parts == 100 && $0.attempt == SegmentRecord.attempt(of: segment.send) })
    desk.acknowledge()
    #expect(desk.broadcasts.finished[broadcast]?.count == 100 && desk.group[Self.partition]?.offset == 1)
  }

  @Test func slowBroadcastHasNoMorePagesThanFastOne() throws {
    func pages(rate: Int?) -> Int? {
      var desk = Self.desk(devices: 20) {
        $0.broadcasts.undividedDevices = 1_000
        $0.broadcasts.pageDevices = 5_000
      }
      desk.registry[.tag("news")] = (0..<10_000).map { Desk.target("d\($0)", .fcm) }
      var send = desk.send(to: .tag("news"))
      send = SendRequest(
        id: send.id, sender: "tester", acceptedAt: send.acceptedAt, audience: send.audience, content: send.content,
        maximumPerSecond: rate)
      desk.deliver(send)
      return desk.segments.first?.pages
    }
    let slow = try #require(pages(rate: 1))
    #expect(slow <= 15 && slow == pages(rate: 1_000))
  }
}
