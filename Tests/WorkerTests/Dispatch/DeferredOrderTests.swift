import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// After an outage the oldest push of a device comes first, however often it went round a retry topic, and those after
/// it one by one.
struct DeferredOrderTests {
  private static let silence = PushOutcome(.retryLater, reason: "ServiceUnavailable", status: 503)
  private static let accepted = PushOutcome(.accepted, status: 200)

  /// A desk on which APNs has been unavailable for some seconds, with the sends of one user that are accepted from then
  /// on, a second apart.
  func broken(_ desk: inout Desk, sends: Int) -> [SendRequest] {
    for number in 0..<20 { desk.register("u\(number)", .apns) }
    desk.register("bob", .apns, .fcm)
    for number in 0..<20 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    for push in desk.pushes.dropLast() { desk.answer(push, Self.silence, from: 0) }
    desk.advance(.seconds(3))
    desk.answer(desk.pushes[19], Self.silence, from: 0)
    #expect(desk.circuit(0) == .open)
    var sent: [SendRequest] = []
    for _ in 0..<sends {
      sent.append(desk.send(to: .user("bob")))
      desk.deliver(sent[sent.count - 1])
      desk.answerAll(Self.accepted, to: "bob-1")
      desk.advance(.seconds(1))
    }
    return sent
  }

  /// Lets the service be back, as the push that tries finds out.
  private func heal(_ desk: inout Desk) {
    desk.advance(.seconds(6))
    let probe = desk.pushes[desk.pushes.count - 1]
    desk.answer(probe, Self.accepted, from: 0)
    #expect(desk.circuit(0) == .closed)
  }

  private func order(_ desk: Desk) -> [[UInt8]] { desk.pushes.filter { $0.handle == "bob-0" }.map(\.rendering.body) }

  private func bodies(_ sends: [SendRequest]) -> [[UInt8]] { sends.map { Array("\($0.id)".utf8) } }

  /// Answers each push to the user's phone at once, until no further push is made.
  private func drain(_ desk: inout Desk) {
    var answered = desk.pushes.count { $0.handle == "bob-0" }
    for push in desk.pushes where push.handle == "bob-0" { desk.answer(push, Self.accepted, from: 0) }
    for _ in 0..<20 {
      desk.advance(.milliseconds(100))
      let pushes = desk.pushes.filter { $0.handle == "bob-0" }
      #expect(pushes.count <= answered + 1, "one after another")
      for push in pushes.dropFirst(answered) { desk.answer(push, Self.accepted, from: 0) }
      answered = pushes.count
    }
  }

  @Test func oldestReadmittedPushIsSentFirst() {
    var desk = Desk(retryDelays: [15, 60, 300])
    let sends = broken(&desk, sends: 4)
    heal(&desk)
    let back = desk.retries.map(\.value).filter { value in
      (try? RetryRecord.decode(value[...], recordTime: desk.wall))?.send.audience == .user("bob")
    }
    #expect(back.count == 3, "the oldest stays to try with")
    desk.advance(.seconds(15))
    let fresh = desk.send(to: .user("bob"))
    desk.deliver(fresh)
    desk.answerAll(Self.accepted, to: "bob-1")
    for value in back.reversed() { desk.deliver([value]) }
    drain(&desk)
    #expect(order(desk) == bodies(sends + [fresh]))
    #expect(desk.order(0).count == 1, "only the push that was not readmitted")
    #expect(
      Set(desk.statuses.filter { $0.devices.contains { $0.platform == .fcm } }.map(\.send))
        == Set((sends + [fresh]).map(\.id)))
  }

  @Test
  func pushesToOneDeviceFollowOneAnotherWithoutPolling()
    throws
  {
    var desk = Desk(retryDelays: [15, 60, 300])
    let sends = broken(&desk, sends: 2)
    heal(&desk)
    let back = try #require(desk.retries.last?.value)
    desk.advance(.seconds(14))
    var fresh: [SendRequest] = []
    for _ in 0..<1000 { fresh.append(desk.send(to: .user("bob"))) }
    for send in fresh {
      desk.deliver(send)
      // Its other device's; the user's next send waits for that.
      desk.answer(desk.pushes[desk.pushes.count - 1], Self.accepted, from: 1)
    }
    let look = desk.nextRested
    for _ in 0..<10 { desk.advance(.milliseconds(100)) }
    #expect(desk.restingCount == fresh.count)
    #expect(desk.nextRested == look)
    desk.deliver([back])
    for _ in 0...fresh.count { desk.answer(desk.pushes[desk.pushes.count - 1], Self.accepted, from: 0) }
    #expect(order(desk).elementsEqual(bodies(sends + fresh)))
    #expect(desk.order(0).count == 1, "another user's, which was not readmitted")
  }

  @Test func waitingPushIsDeferredWhenHalfOfBytesAreHeld() {
    var desk = Desk(retryDelays: [15, 60, 300]) { $0.limits.maximumBytes = 1 }
    _ = broken(&desk, sends: 2)
    heal(&desk)
    let before = desk.retries.count
    desk.deliver(desk.send(to: .user("bob")))
    desk.answerAll(Self.accepted, to: "bob-1")
    desk.advance(.seconds(1))
    #expect(desk.retries.count == before + 1)
  }

  @Test func waitingPushesLeaveWhenRoomIsShort() {
    var desk = Desk(retryDelays: [15, 60, 300]) { $0.limits.maximumRecords = 100 }
    _ = broken(&desk, sends: 2)
    heal(&desk)
    let before = desk.retries.count
    for _ in 0..<95 {
      desk.deliver(desk.send(to: .user("bob")))
      desk.answerAll(Self.accepted, to: "bob-1")
      desk.advance(.milliseconds(100))
    }
    #expect(desk.retries.count >= before + 20)
    #expect(desk.held.records <= 76)
  }

  @Test func waitingPushLeavesBeforeSpanIsExhausted() {
    var desk = Desk(retryDelays: [15, 60, 300]) { $0.limits.maximumSpan = 60 }
    _ = broken(&desk, sends: 2)
    heal(&desk)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answerAll(Self.accepted, to: "bob-1")
    let before = desk.retries.count
    for number in 0..<40 {
      desk.register("v\(number)", .fcm)
      desk.deliver(desk.send(to: .user("v\(number)")))
      desk.answerAll(Self.accepted, to: "v\(number)-0")
    }
    #expect(desk.retries.count == before)
    desk.advance(.seconds(1))
    #expect(desk.retries.count == before + 1)
  }

  @Test func waitingPushIsDeferredWhenServiceStopsAgain() {
    var desk = Desk(retryDelays: [15, 60, 300]) { $0.circuit.refusals = 20 }
    _ = broken(&desk, sends: 2)
    heal(&desk)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answerAll(Self.accepted, to: "bob-1")
    let before = desk.retries.count
    desk.advance(.seconds(1))
    #expect(desk.retries.count == before)
    let first = desk.pushes.count
    for number in 0..<20 { desk.register("v\(number)", .apns) }
    for number in 0..<20 { desk.deliver(desk.send(to: .user("v\(number)"))) }
    for push in desk.pushes[first...] {
      desk.answer(push, PushOutcome(.configurationError, reason: "BadTopic", status: 400), from: 0)
    }
    #expect(desk.circuit(0) == .open)
    desk.advance(.seconds(1))
    #expect(desk.retries.count == before + 1)
    #expect(desk.held.records == 20, "those that were refused")
  }

  /// Against a list that is searched from end to end.
  @Test(arguments: UInt64(0)..<20)
  func firstWaitingPushIsWokenInAnyInterleaving(seed: UInt64) {
    struct Entry {
      let id: SendID
      let acceptedAt: UnixTime
      let due: Int64
      var waiting: Ticket?
    }
    var random = SeededGenerator(seed: seed)
    var order = DeferredOrder(capacity: 50)
    let device = RegistrationID.random(using: &random)
    var model: [Entry] = []
    var (uptime, lookDue, woken): (Int64, Int64, Int) = (0, 0, 0)
    func asBefore(_ entry: Entry) -> DeferredOrder.Before {
      DeferredOrder.Before(due: entry.due, isHere: entry.waiting != nil || entry.due <= uptime)
    }
    /// Whom the list has next, if that waits.
    func wakeNext() -> Ticket? {
      guard let next = model.firstIndex(where: { uptime <= $0.due + 60_000 }) else { return nil }
      defer { model[next].waiting = nil }
      return model[next].waiting
    }
    for step in 0..<2000 {
      uptime += Int64.random(in: 0..<2000, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1, 2:
        let (id, moment) = (
          SendID.random(using: &random), UnixTime(milliseconds: Int64.random(in: 0..<40, using: &random))
        )
        let before = model.last { $0.acceptedAt <= moment && uptime <= $0.due + 60_000 }
        #expect(order.before(id, acceptedAt: moment, to: device, at: uptime) == before.map { asBefore($0) })
        let due = uptime + Int64.random(in: -30_000..<30_000, using: &random)
        let entry = Entry(
          id: id, acceptedAt: moment, due: due, waiting: before != nil ? Ticket(slot: step, generation: 0) : nil)
        let isKnown = order.remember(id, acceptedAt: moment, to: device, due: due, waiting: entry.waiting)
        #expect(isKnown == (model.count < 50))
        if isKnown { model.insert(entry, at: model.firstIndex { $0.acceptedAt > moment } ?? model.count) }
      case 3, 4:
        guard let index = model.indices.randomElement(using: &random) else { continue }
        #expect(
          order.before(model[index].id, acceptedAt: model[index].acceptedAt, to: device, at: uptime)
            == model[..<index].last { uptime <= $0.due + 60_000 }.map { asBefore($0) })
        let entry = model.remove(at: index)
        let next = order.forget(entry.id, acceptedAt: entry.acceptedAt, to: device, at: uptime)
        #expect(next == wakeNext())
        if next != nil { woken += 1 }
      default:
        let overdue = order.forgetOverdue(at: uptime)
        if !model.isEmpty, uptime >= lookDue {
          lookDue = uptime + 15_000
          model.removeAll { uptime > $0.due + 60_000 }
          #expect(overdue == [wakeNext()].compactMap(\.self))
        }
      }
      #expect(order.count == model.count)
    }
    #expect(woken > 0)
    #expect(Set(order.takeWaiting()) == Set(model.compactMap(\.waiting)))
    #expect(order.takeWaiting().isEmpty)
  }

  @Test func repeatedlyDeferredPushIsStillWaitedFor() {
    var desk = Desk(retryDelays: [15, 60, 300])
    let sends = broken(&desk, sends: 3)
    let first = desk.retries.map(\.value)
    desk.advance(.seconds(15))
    // Only the second of them is readmitted when the service works again.
    desk.deliver([first[first.count - 2]])
    desk.advance(.seconds(1))
    let again = desk.retries[first.count...].map(\.value)
    heal(&desk)
    desk.deliver([first[first.count - 1]])
    drain(&desk)
    #expect(order(desk) == bodies([sends[0]]))
    desk.advance(.seconds(15))
    for value in again { desk.deliver([value]) }
    drain(&desk)
    #expect(order(desk) == bodies(sends))
  }

  @Test func failedProbeStillComesBeforeYoungerPushes() {
    var desk = Desk(retryDelays: [15, 60, 300])
    let sends = broken(&desk, sends: 2)
    desk.deliver(desk.send(to: .user("u0")))
    let back = desk.retries.suffix(1).map(\.value)
    desk.advance(.seconds(3))
    let tried = desk.pushes[desk.pushes.count - 1]
    #expect(tried.handle == "bob-0")
    heal(&desk)
    #expect(desk.pushes[desk.pushes.count - 1].handle == "u0-0")
    desk.advance(.seconds(9))
    for value in back { desk.deliver([value]) }
    desk.answer(tried, PushOutcome(.unknown, reason: "Timeout"), from: 0)
    for _ in 0..<5 { desk.advance(.milliseconds(500)) }
    #expect(order(desk) == bodies([sends[0], sends[0]]))
    drain(&desk)
    #expect(order(desk) == bodies([sends[0], sends[0], sends[1]]))
  }

  @Test func pushThatNeverComesBackIsNotWaitedForForever() {
    var desk = Desk(retryDelays: [15, 60, 300])
    let sends = broken(&desk, sends: 3)
    heal(&desk)
    desk.advance(.seconds(15))
    desk.deliver([desk.retries[desk.retries.count - 1].value])
    drain(&desk)
    #expect(order(desk) == bodies([sends[0]]))
    for _ in 0..<70 { desk.advance(.seconds(1)) }
    drain(&desk)
    #expect(order(desk) == bodies([sends[0], sends[2]]))
    for _ in 0..<70 { desk.advance(.seconds(1)) }
    #expect(desk.order(0).isEmpty)
  }

  @Test func waitingPushGoesBeforeItWouldExpire() {
    var desk = Desk(retryDelays: [15, 60, 300])
    _ = broken(&desk, sends: 2)
    heal(&desk)
    let short = desk.send(to: .user("bob"), timeToLive: 5)
    desk.deliver(short)
    desk.answerAll(Self.accepted, to: "bob-1")
    desk.advance(.milliseconds(2900))
    let before = desk.pushes.count
    desk.advance(.milliseconds(200))
    #expect(desk.pushes.count == before + 1)
    desk.answer(desk.pushes[before], Self.accepted, from: 0)
    let ended = desk.statuses.filter { $0.send == short.id }.flatMap(\.devices)
    #expect(ended.map(\.outcome) == [.delivered, .delivered])
  }

  @Test func probesDuringOutageLoseNoAttempts() throws {
    var desk = Desk(retryDelays: [15, 60, 300])
    _ = broken(&desk, sends: 1)
    for number in 0..<5 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    var tried: [String] = []
    for _ in 0..<12 {
      let seen = desk.pushes.count
      desk.advance(.seconds(6))
      guard desk.pushes.count > seen else { continue }
      tried.append(desk.pushes[seen].handle)
      desk.answer(desk.pushes[seen], PushOutcome(.unknown, reason: "Timeout"), from: 0)
      for value in desk.retries.suffix(1).map(\.value) { desk.deliver([value]) }
      desk.advance(.seconds(1))
    }
    #expect(desk.statuses.isEmpty, "no send is given up")
    #expect(Set(tried).count > 1)
  }

  @Test func deferredPushesToDeviceComeBackInOrderOneRoundLater()
    throws
  {
    var desk = Desk(retryDelays: [15, 60, 300])
    _ = broken(&desk, sends: 1)
    // Of a round of 50 seconds.
    for _ in 0..<5000 {
      let push = DeferredOrder.Push(id: .random(), acceptedAt: desk.wall, device: .random())
      desk.dispatcher.lanes[0].remember(push, due: 1_000_000)
    }
    for _ in 0..<100 { desk.advance(.seconds(1)) }
    func bobs() throws -> [(value: [UInt8], notBefore: UnixTime)] {
      try desk.retries.map { ($0.value, try RetryRecord.decode($0.value[...], recordTime: desk.wall)) }
        .filter { $1.send.audience == .user("bob") }.map { ($0, $1.notBefore) }
    }
    // One of them may stay to try with.
    for _ in 0..<8 {
      desk.deliver(desk.send(to: .user("bob")))
      desk.answerAll(Self.accepted, to: "bob-1")
      desk.advance(.milliseconds(100))
    }
    desk.advance(.seconds(1))
    let first = try bobs()
    try #require(first.count >= 6)
    #expect(isChain(first.map(\.notBefore)))
    while desk.wall < first[first.count - 1].notBefore { desk.advance(.seconds(1)) }
    for retry in first { desk.deliver([retry.value]) }
    let before = desk.wall
    desk.advance(.seconds(1))
    let again = try bobs()[first.count...].map(\.notBefore)
    try #require(again.count >= 3)
    #expect(isChain(again) && again[0] >= before + .seconds(50))
  }

  private func isChain(_ times: [UnixTime]) -> Bool {
    zip(times, times.dropFirst()).allSatisfy { $0 < $1 && $1 - $0 < .seconds(20) }
  }
}

extension Desk {
  /// Answers everything that was handed over for a device.
  fileprivate mutating func answerAll(_ outcome: PushOutcome, to handle: String) {
    for push in pushes where push.handle == handle { answer(push, outcome, from: 1) }
  }
}
