import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

struct OrderTests {
  /// 50 users × 200 sends to one or two devices each, answered at random with all kinds of answers: at no moment are
  /// two sends of a user in their first attempts, and the first attempts come in the order in which the sends were
  /// accepted.
  @Test func sendsOfOneUserStartOneAfterAnother() throws {
    var random = SeededGenerator(seed: 7)
    var desk = Desk { $0.limits.maximumPushes = 40 }
    for user in 0..<50 {
      if user % 2 == 0 { desk.register("user\(user)", .fcm) } else { desk.register("user\(user)", .apns, .fcm) }
    }
    var order: [Int: [SendID]] = [:]
    var user: [SendID: Int] = [:]
    var places = (0..<50).flatMap { [Int](repeating: $0, count: 200) }
    places.shuffle(using: &random)
    for place in places {
      let send = desk.send(to: .user("user\(place)"))
      order[place, default: []].append(send.id)
      user[send.id] = place
      desk.deliver(send)
    }

    var seen = 0
    var started: [Int: [SendID]] = [:]
    var attempted: Set<PushID> = []
    var openFirsts: [Int: (send: SendID, count: Int)] = [:]
    var inFlight: [(push: Push, isFirst: Bool, user: Int)] = []
    while true {
      for push in desk.pushes[seen...] {
        let send = try #require(SendID(String(decoding: push.rendering.body, as: UTF8.self)))
        let owner = try #require(user[send])
        let isFirst = attempted.insert(push.id).inserted
        if isFirst {
          if let open = openFirsts[owner], open.count > 0 {
            #expect(open.send == send, "two sends of one user at once")
          }
          if started[owner]?.last != send { started[owner, default: []].append(send) }
          openFirsts[owner] = (send, openFirsts[owner].map { $0.send == send ? $0.count + 1 : 1 } ?? 1)
        }
        inFlight.append((push, isFirst, owner))
      }
      seen = desk.pushes.count
      guard !inFlight.isEmpty else {
        guard desk.restingCount > 0 else { break }
        desk.advance(.seconds(30))
        continue
      }
      let index = Int.random(in: inFlight.indices, using: &random)
      let (push, isFirst, owner) = inFlight.remove(at: index)
      if isFirst, let open = openFirsts[owner] { openFirsts[owner] = (open.send, open.count - 1) }
      let outcome =
        switch Int.random(in: 0..<20, using: &random) {
        case 0: PushOutcome(.retryLater, reason: "Busy", status: 503)
        case 1: PushOutcome(.unknown, reason: "Timeout")
        case 2: PushOutcome(.retryHere, reason: "GoAway")
        case 3: PushOutcome(.rejected, reason: "Bad", status: 400)
        default: PushOutcome(.accepted, status: 200)
        }
      desk.answer(push, outcome)
    }
    #expect(started == order)
    #expect(desk.statuses.count == 10_000)
    #expect(Set(desk.statuses.map(\.send)).count == 10_000)
    #expect(desk.mostPushes <= 40)
    #expect(desk.position == 10_000)
    #expect(desk.held.records == 0)
    #expect(desk.hasNoLanes)
  }

  @Test func waitOfOneSendDoesNotDelayUsersNext() {
    var desk = Desk()
    desk.register("bob", .fcm)
    let sends = [desk.send(to: .user("bob")), desk.send(to: .user("bob"))]
    desk.deliver(sends[0], sends[1])
    #expect(desk.pushes.count == 1)
    desk.answerAll(from: 0, PushOutcome(.retryLater, reason: "Busy", status: 503))
    #expect(desk.pushes.map(\.rendering.body) == sends.map { Array("\($0.id)".utf8) })
  }

  @Test func recordsWithoutKeyKeepTheOrderOfTheirUser() {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.deliver([desk.send(to: .user("bob")).encoded(), desk.send(to: .user("bob")).encoded()])
    #expect(desk.pushes.count == 1)
    desk.answerAll()
    #expect(desk.pushes.count == 2)
  }

  @Test func stoppedPlatformDoesNotDelayUsersOtherDevices() {
    var desk = Desk()
    desk.register("bob", .apns, .fcm)
    let sends = [desk.send(to: .user("bob")), desk.send(to: .user("bob")), desk.send(to: .user("bob"))]
    desk.deliver(sends[0])
    let refused = desk.pushes[0]
    desk.answer(refused, PushOutcome(.configurationError, reason: "BadCertificate", status: 403))
    desk.answer(desk.pushes[1], PushOutcome(.accepted))
    desk.deliver(sends[1], sends[2])
    #expect(desk.pushes.count == 3)
    desk.answer(desk.pushes[2], PushOutcome(.accepted))
    #expect(desk.pushes.count == 4)
    // When it works again, its queue is sent in order.
    desk.advance(.seconds(20))
    #expect(desk.pushes.count == 5)
    // One after another, as if it had worked all the time.
    for number in 4..<7 {
      #expect(desk.pushes.count == number + 1)
      desk.answer(desk.pushes[number], PushOutcome(.accepted))
      desk.advance(.milliseconds(100))
    }
    #expect(desk.pushes[4...].map(\.rendering.body) == sends.map { Array("\($0.id)".utf8) })
  }

  @Test func duplicateSendIsPushedOnceAndBothRecordsSettle() {
    var desk = Desk()
    desk.register("bob", .fcm)
    let send = desk.send(to: .user("bob"))
    desk.deliver(send, send, desk.send(to: .user("unregistered")))
    #expect(desk.pushes.count == 1)
    #expect(desk.position == 0)
    desk.answerAll()
    #expect(desk.position == 3)
    desk.deliver(send)
    #expect(desk.pushes.count == 1)
    #expect(desk.position == 4)
    #expect(desk.statuses.count == 2)
  }

  @Test func duplicateSendIsKnownAlthoughItsSlotIsReused() {
    var desk = Desk { $0.times.commitInterval = .zero }
    desk.register("bob", .fcm)
    desk.register("al", .fcm)
    let send = desk.send(to: .user("bob"))
    desk.deliver(send)
    desk.answerAll()
    #expect(desk.position == 1)
    desk.deliver(desk.send(to: .user("al")), send)
    #expect(desk.pushes.count == 2)
    // The other one is open, and what came again does not wait for it.
    desk.advance(.milliseconds(100))
    #expect(desk.position == 1)
    #expect(desk.group[Desk.partition]?.settledRuns.map { Array(SettledRuns($0, from: 1).ranges) } == [2..<3])
    desk.answerAll()
    #expect(desk.position == 3)
    #expect(desk.pushes.count == 2)
  }

  @Test func replayedSendIsPushedOncePerReplay() {
    var desk = Desk()
    desk.register("bob", .fcm)
    let send = desk.send(to: .user("bob"))
    desk.deliver(send)
    desk.answerAll()
    let replayed = send.replayed(by: .random(), on: .all)
    desk.deliver(replayed)
    #expect(desk.pushes.count == 2)
    #expect(desk.pushes.map(\.id) == [desk.pushes[0].id, desk.pushes[0].id])
    desk.answer(desk.pushes[1], PushOutcome(.accepted))
    #expect(desk.statuses.map(\.send) == [send.id, send.id])
    desk.deliver(replayed, send)
    #expect(desk.pushes.count == 2)
    #expect(desk.position == 4)
    desk.deliver(send.replayed(by: .random(), on: .all))
    #expect(desk.pushes.count == 3)
  }
}
