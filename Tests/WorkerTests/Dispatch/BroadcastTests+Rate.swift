import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// Broadcasts whose rate is changed while they are pushed.
extension BroadcastTests {
  /// The pushes of each of the next seconds, with each push answered at once.
  private static func pushes(_ desk: inout Desk, seconds: Int) -> [Int] {
    (0..<seconds).map { _ in
      let before = desk.pushes.count
      for _ in 0..<20 {
        answerAll(&desk)
        desk.advance(.milliseconds(50))
      }
      return desk.pushes.count - before
    }
  }

  @Test func broadcastFollowsItsNewRate() throws {
    var desk = Self.desk(devices: 200)
    _ = Self.divided(&desk, rate: 10)
    Self.begin(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    #expect(Self.pushes(&desk, seconds: 3).allSatisfy { (8...13).contains($0) })
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .accepted, rate: .perSecond(30))
    _ = Self.pushes(&desk, seconds: 1)
    let quick = Self.pushes(&desk, seconds: 2)
    #expect(quick.allSatisfy { (25...35).contains($0) }, "\(quick)")
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .accepted, rate: .perSecond(2))
    _ = Self.pushes(&desk, seconds: 1)
    let slow = Self.pushes(&desk, seconds: 3)
    #expect(slow.allSatisfy { (1...4).contains($0) }, "\(slow)")
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .accepted, rate: .unlimited)
    _ = Self.pushes(&desk, seconds: 3)
    #expect(desk.pushes.count == 200 && Set(desk.pushes.map(\.handle)).count == 200)
    #expect(desk.group[Self.partition]?.offset == 3)
  }

  @Test func unlimitedBroadcastIsSlowedDown() throws {
    var desk = Self.desk(devices: 200) { $0.limits.maximumPushes = 3 }
    _ = Self.divided(&desk)
    Self.begin(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .accepted, rate: .perSecond(4))
    desk.advance(.milliseconds(500))
    Self.answerAll(&desk)
    #expect(desk.pushes.count < 100, "only what was in the queues is pushed at the former rate")
    let slow = Self.pushes(&desk, seconds: 4)
    #expect(slow.dropFirst().allSatisfy { (2...6).contains($0) }, "\(slow)")
  }

  /// The audience would be small enough for one piece, which has no rate.
  @Test func rateThatIsSetBeforeTheSurveyDividesTheBroadcast() throws {
    var desk = Self.desk(devices: 20)
    desk.answersQuestions = false
    let send = Self.divided(&desk)
    let broadcast = BroadcastID(hub: send.hub, send: send.identity)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .accepted, rate: .perSecond(5))
    desk.answersQuestions = true
    desk.answerQuestions()
    #expect(desk.pushes.isEmpty && desk.segments.allSatisfy { $0.send.maximumPerSecond == 5 } && !desk.segments.isEmpty)
    Self.begin(&desk)
    let pushes = Self.pushes(&desk, seconds: 3)
    #expect(pushes.allSatisfy { (3...8).contains($0) }, "\(pushes)")
  }

  @Test func readmittedRecordFollowsTheNewRate() {
    var desk = Desk(retryDelays: [2, 15])
    let record = StoppedRoomTests.page(&desk, devices: 40, rate: 1)
    let broadcast = BroadcastID(hub: record.send.hub, send: record.send.identity)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .accepted, rate: .unlimited)
    desk.deliver([record.encoded(at: desk.wall)])
    Self.answerAll(&desk)
    desk.advance(.milliseconds(50))
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 40)
    #expect(desk.statuses.count == 1)
  }
}
