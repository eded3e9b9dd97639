import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// A broadcast that waits for a quota or a rate leaves turns and room to other broadcasts.
struct QuotaRoomTests {
  private static let accepted = PushOutcome(.accepted, status: 200)

  /// A desk of two hubs: the named one's FCM takes a push a second.
  private func desk(_ hub: HubName, retryDelays: [Int] = Desk.distant) -> Desk {
    var desk = Desk(
      senders: [.default: [.apns: ScriptedSender(.apns)], hub: [.fcm: ScriptedSender(.fcm)]], retryDelays: retryDelays
    ) {
      $0.broadcasts.undividedDevices = 20
      $0.broadcasts.pageDevices = 10
      $0.broadcasts.lookUpPage = 4
      $0.broadcasts.segments = 3
      $0.pushesPerMinute = [hub: [.fcm: 60]]
    }
    desk.broadcasts.quotas = [:]
    desk.assign([BroadcastTests.partition])
    return desk
  }

  /// Posts a broadcast to that number of devices of the hub, and lets its segments come.
  private func broadcast(to devices: Int, of hub: HubName, on platform: Platform, _ desk: inout Desk) -> SendRequest {
    var generator = SeededGenerator(seed: UInt64(devices))
    let targets = (0..<devices).map { number in
      Target(
        registration: .random(using: &generator), platform: platform, handle: "\(hub)-\(number)",
        registeredAt: UnixTime(milliseconds: 0))
    }
    desk.registry[.tag(hub.rawValue)] = targets
    for target in targets { desk.registry[.registration(target.registration)] = [target] }
    let send = SendRequest(
      id: .random(), hub: hub, sender: "tester", acceptedAt: desk.wall, audience: .tag(hub.rawValue),
      content: Content(message: Message(body: "hello")))
    desk.segments = []
    desk.deliver(send)
    BroadcastTests.begin(&desk)
    return send
  }

  /// Answers pushes for a number of steps of 50 ms.
  private func run(_ desk: inout Desk, steps: Int) {
    for _ in 0..<steps {
      BroadcastTests.answerAll(&desk)
      desk.advance(.milliseconds(50))
    }
  }

  @Test func pageWaitingForQuotaDoesNotBlockOtherHub() throws {
    let hub = try #require(HubName("other"))
    var desk = desk(hub)
    let slow = broadcast(to: 60, of: hub, on: .fcm, &desk)
    run(&desk, steps: 4)
    let other = broadcast(to: 200, of: .default, on: .apns, &desk)
    run(&desk, steps: 20)
    #expect(desk.statuses.count { $0.send == other.id } == other.pages(in: desk))
    #expect(desk.pushes.count { $0.handle.hasPrefix("other") } < 5)
    run(&desk, steps: 1500)
    #expect(desk.pushes.count == 260 && Set(desk.pushes.map(\.handle)).count == 260)
    #expect(
      desk.statuses.count { $0.send == slow.id } == slow.pages(in: desk) && desk.held.segments == 0)
  }

  @Test(arguments: 200..<210) func pageWaitingForQuotaTakesNoHeadStart(devices: Int) throws {
    let hub = try #require(HubName("other"))
    var desk = desk(hub)
    _ = broadcast(to: 60, of: hub, on: .fcm, &desk)
    run(&desk, steps: 4)
    _ = broadcast(to: devices, of: .default, on: .apns, &desk)
    for _ in 0..<10 { desk.advance(.milliseconds(50)) }
    #expect(desk.dispatcher.lanes.contains { $0.hasQueuedBroadcast && $0.quota.quota != nil })
    let slots = desk.pushes.filter { $0.handle.hasPrefix("default") }.map { Ticket(rawValue: $0.ticket).slot }
    let first = slots.count { $0 == slots[0] }
    // The next page may hold less than its head start.
    #expect(first > 8 || slots.count > first)
  }

  @Test func readmittedRecordWaitingForQuotaLeavesRoomOfOthers() throws {
    let hub = try #require(HubName("other"))
    var desk = desk(hub, retryDelays: [2, 15])
    desk.deliver([StoppedRoomTests.page(&desk, devices: 10, of: hub, on: .fcm).encoded(at: desk.wall)])
    desk.deliver([StoppedRoomTests.page(&desk, number: 1, devices: 10).encoded(at: desk.wall)])
    #expect(desk.pushes.count == 11)
    run(&desk, steps: 1)
    #expect(desk.statuses.count == 1 && desk.readmitted == 1)
    run(&desk, steps: 250)
    #expect(desk.statuses.count == 2 && desk.pushes.count == 20 && desk.readmitted == 0)
  }

  @Test func ratedReadmissionLeavesRoomForUnrated() {
    var desk = Desk(retryDelays: [2, 15]) { $0.broadcasts.pageDevices = 50 }
    desk.deliver([StoppedRoomTests.page(&desk, devices: 40, rate: 20).encoded(at: desk.wall)])
    desk.deliver([StoppedRoomTests.page(&desk, number: 1, devices: 30).encoded(at: desk.wall)])
    #expect(desk.pushes.count { $0.handle.hasPrefix("p1") } == 30)
  }

  @Test func oneReadmittedRecordOfRatedBroadcastAtATime() {
    var desk = Desk(retryDelays: [2, 15])
    desk.answersQuestions = false
    let first = StoppedRoomTests.page(&desk, devices: 8, rate: 20)
    let second = StoppedRoomTests.page(&desk, number: 1, devices: 8, rate: 20)
    let records = [
      first,
      RetryRecord(send: first.send, part: 1, parts: 50, attempt: first.attempt, deferrals: 1, devices: second.devices),
    ]
    desk.deliver(records.map { $0.encoded(at: desk.wall) })
    desk.answerQuestions()
    let asked = desk.questions.count { if case .reserve = $0 { true } else { false } }
    #expect(asked == 1)
    desk.answersQuestions = true
    desk.answerQuestions()
    run(&desk, steps: 40)
    #expect(desk.pushes.count == 16 && desk.statuses.count == 2 && desk.readmitted == 0)
  }

  @Test func readmittedDevicesDueLaterKeepTheRate() throws {
    var desk = BroadcastTests.desk(devices: 200, retryDelays: [2, 15])
    let send = BroadcastTests.divided(&desk, rate: 20)
    let page = StoppedRoomTests.page(&desk, number: 1, devices: 60, rate: 20, after: .seconds(5))
    let record = RetryRecord(
      send: send, part: 999, parts: 1000, attempt: SegmentRecord.attempt(of: send), deferrals: 1, devices: page.devices)
    desk.deliver([record.encoded(at: desk.wall)])
    BroadcastTests.begin(&desk)
    var (counts, before, returned) = ([Int](), desk.pushes.count, 0)
    for _ in 0..<600 {
      BroadcastTests.answerAll(&desk)
      for value in desk.retries[returned...].map(\.value) {
        guard try RetryRecord.decode(value[...], recordTime: desk.wall).notBefore <= desk.wall else { break }
        desk.deliver([value])
        returned += 1
      }
      counts.append(desk.pushes.count - before)
      before = desk.pushes.count
      desk.advance(.milliseconds(50))
    }
    let most = counts.indices.dropLast(20).map { counts[$0..<$0 + 20].reduce(0, +) }.max() ?? 0
    // A second's, and the quarter of a second's that a page takes at a time.
    #expect(most <= 25)
    #expect(desk.pushes.count == 260 && Set(desk.pushes.map(\.handle)).count == 260)
  }
}
