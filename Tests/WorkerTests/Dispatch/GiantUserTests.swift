import FanfareCore
import RDKafka
import Testing

@testable import Worker

/// A user with more devices than are looked up at once, and look-ups that fail.
struct GiantUserTests {
  private func desk(devices: Int) -> Desk {
    var desk = Desk(retryDelays: [15, 60, 300]) {
      $0.limits.lookUpDevices = 20
      $0.broadcasts.undividedDevices = 50
      $0.broadcasts.pageDevices = 50
      $0.broadcasts.lookUpPage = 30
    }
    desk.registry[.user("giant")] = (0..<devices).map { Desk.target("g\($0)", .fcm) }
    desk.register("bob", .fcm)
    desk.findsRegistrations = true
    return desk
  }

  /// Delivers the segments that were written, and answers every push.
  private func run(_ desk: inout Desk) {
    let segments = TopicPartition(topic: "fanfare.segments", partition: 0)
    desk.assign([segments])
    desk.deliver(desk.segments.map { $0.encoded(at: desk.wall) }, from: segments)
    var answered = 0
    for _ in 0..<200 {
      while answered < desk.pushes.count {
        desk.answer(desk.pushes[answered], PushOutcome(.accepted, status: 200))
        answered += 1
      }
      desk.advance(.milliseconds(300))
    }
  }

  @Test func userWithFewDevicesIsDispatchedInOnePiece() {
    var desk = desk(devices: 20)
    desk.deliver(desk.send(to: .user("giant")))
    #expect(desk.pushes.count == 20 && desk.segments.isEmpty)
  }

  @Test func userWithSomeMoreDevicesIsSurveyedAndDispatchedInOnePiece() {
    var desk = desk(devices: 45)
    desk.deliver(desk.send(to: .user("giant")))
    #expect(desk.pushes.count == 45 && desk.segments.isEmpty)
    desk.answerAll()
    #expect(desk.statuses.flatMap(\.devices).count == 45 && desk.position == 1)
  }

  @Test func userWithManyDevicesIsDividedLikeTag() throws {
    var desk = desk(devices: 400)
    let send = desk.send(to: .user("giant"))
    desk.deliver(send, desk.send(to: .user("giant")), desk.send(to: .user("bob")))
    #expect(desk.pushes.map(\.handle) == ["bob-0"], "nobody waits for the giant")
    #expect(Set(desk.segments.map(\.send.id)).count == 2)
    #expect(desk.position == nil || desk.position == 2, "the plans are durable")
    run(&desk)
    let handles = desk.pushes.filter { $0.handle.hasPrefix("g") }.map(\.handle)
    #expect(handles.count == 800 && Set(handles).count == 400)
    let parts = desk.statuses.filter { $0.send == send.id }
    let pages = try #require(parts.first?.parts)
    #expect(pages > 1 && Set(parts.map(\.part)) == Set(0..<pages) && parts.count == pages)
    #expect(parts.reduce(0) { $0 + $1.counts.total + $1.devices.count } == 400)
    #expect(desk.position == 3)
  }

  @Test func planIsNotWrittenAgainAfterCrash() {
    var desk = desk(devices: 400)
    let send = desk.send(to: .user("giant"))
    desk.deliver(send)
    let written = desk.segments.count
    var next = self.desk(devices: 400)
    next.broadcasts = desk.broadcasts
    next.deliver(send)
    #expect(written > 0 && next.segments.isEmpty && next.position == 1)
  }

  @Test func repetitionOfPageLooksUpTheDeviceAlone() throws {
    var desk = desk(devices: 400)
    desk.deliver(desk.send(to: .user("giant")))
    let segments = TopicPartition(topic: "fanfare.segments", partition: 0)
    desk.assign([segments])
    desk.deliver(desk.segments.map { $0.encoded(at: desk.wall) }, from: segments)
    let first = try #require(desk.pushes.first)
    desk.answer(first, PushOutcome(.retryLater, reason: "Busy", status: 503, retryAfter: .milliseconds(500)))
    // A page waits for no more than a second: the rest of it comes back through a retry topic.
    for _ in 0..<15 {
      BroadcastTests.answerAll(&desk)
      desk.advance(.seconds(1))
    }
    let asked = desk.queries.count
    desk.deliver([try #require(desk.retries.first).value])
    desk.advance(.seconds(1))
    #expect(desk.pushes.filter { $0.handle == first.handle }.count == 2)
    let later = desk.queries[asked...]
    #expect(later.contains { if case .registration = $0.audience { true } else { false } })
    // No other device of the page gets its push again.
    #expect(desk.pushes.count == Set(desk.pushes.map(\.handle)).count + 1)
  }

  @Test func poisonedLookUpHoldsUpNoOther() {
    var desk = Desk { $0.limits.lookUpBatch = 64 }
    for number in 0..<300 { desk.register("u\(number)", .fcm) }
    desk.poisoned = [.user("u37")]
    desk.answersLookUps = false
    desk.deliver(desk.send(to: .user("u0")))
    for number in 1..<300 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    desk.answersLookUps = true
    desk.answerLookUp()
    for _ in 0..<40 { desk.advance(.milliseconds(50)) }
    #expect(Set(desk.pushes.map(\.handle)).count == 299)
    desk.deliver(desk.send(to: .user("u1")))
    #expect(desk.readinessProblems.isEmpty, "the registry answers")
    // It is asked for again, rarely, and succeeds when it can.
    let asked = desk.queries.count { $0.audience == .user("u37") }
    for _ in 0..<600 { desk.advance(.milliseconds(50)) }
    #expect((1...10).contains(desk.queries.count { $0.audience == .user("u37") } - asked))
    desk.poisoned = []
    for _ in 0..<1300 { desk.advance(.milliseconds(50)) }
    #expect(Set(desk.pushes.map(\.handle)).count == 300)
  }
}
