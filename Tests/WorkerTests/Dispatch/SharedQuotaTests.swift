import FanfareCore
import Registry
import Support
import Testing

@testable import Worker

/// A platform quota that all workers share: two workers on one registry, with a manual clock.
@Suite struct SharedQuotaTests {
  private static let perMinute = 6000

  /// A worker of which nothing is known but that its sends are for FCM.
  private func worker(devices: Int, perMinute: Int = Self.perMinute) -> Desk {
    var desk = Desk { configuration in
      configuration.pushesPerMinute = [.default: [.fcm: perMinute]]
      configuration.limits.maximumPushes = 100_000
      configuration.limits.maximumPushesPerSender = 100_000
      configuration.limits.lookUpDevices = 100_000
      configuration.times.ownershipWindow = .seconds(3600)
    }
    desk.answersQuestions = false
    desk.registry = [.user("alice"): (0..<devices).map { Desk.target("t\($0)", .fcm) }]
    return desk
  }

  private func send(_ desk: inout Desk) { desk.deliver(desk.send(to: .user("alice"))) }

  /// Puts the open questions of the worker to the store.
  private func answer(_ desk: inout Desk, by store: any PushQuotaStore) async throws {
    while !desk.questions.isEmpty {
      let question = desk.questions.removeFirst()
      guard case .quota(_, let pushes, let quota, _) = question else {
        Issue.record("only quotas are asked for")
        continue
      }
      let moment = try await store.reserve(pushes, of: quota, at: desk.wall)
      desk.answer(question, .moment(moment))
    }
  }

  @Test func twoWorkersTogetherStayWithinTheQuotaAndUseIt() async throws {
    let temporary = try TemporaryRegistry()
    let stores = [temporary.registry, try RegistryDatabase(temporary.configuration)]
    var desks = [worker(devices: 9000), worker(devices: 9000)]
    // The second one begins when the first is in full swing.
    let begins = [0, 1500]
    var pushed: [Int] = []
    for step in 0..<9000 {
      var count = 0
      for index in desks.indices {
        let before = desks[index].pushes.count
        if step == begins[index] { send(&desks[index]) }
        desks[index].advance(.milliseconds(20))
        try await answer(&desks[index], by: stores[index])
        count += desks[index].pushes.count - before
        desks[index].answerAll(from: before)
      }
      pushed.append(count)
    }
    // A window of 60 seconds is 3000 steps.
    var (window, most) = (0, 0)
    for step in pushed.indices {
      window += pushed[step] - (step >= 3000 ? pushed[step - 3000] : 0)
      most = max(most, window)
    }
    #expect(most <= Self.perMinute)
    #expect(pushed.reduce(0, +) > 3 * Self.perMinute * 9 / 10, "and nearly all of it is used")
    #expect(desks.allSatisfy { $0.pushes.count > 3000 }, "by both of them")
  }

  @Test func storeThatAnswersAfterASecondStopsNoPush() async throws {
    let temporary = try TemporaryRegistry()
    var desk = worker(devices: 300)
    var answers: [(step: Int, answer: BroadcastAnswer)] = []
    send(&desk)
    for step in 0..<1500 {
      let before = desk.pushes.count
      desk.advance(.milliseconds(20))
      for question in desk.questions {
        guard case .quota(_, let pushes, let quota, let lead) = question else { continue }
        let moment = try await temporary.registry.reserve(pushes, of: quota, at: desk.wall + lead)
        answers.append((step + 50, BroadcastAnswer(question: question, outcome: .moment(moment))))
      }
      desk.questions = []
      while let first = answers.first, first.step == step {
        answers.removeFirst()
        desk.turn { $0.answer(first.answer) }
      }
      desk.answerAll(from: before)
    }
    #expect(desk.pushes.count == 300)
  }

  @Test func workerFarFromItsQuotaAsksRarely() async throws {
    let temporary = try TemporaryRegistry()
    var desk = worker(devices: 1, perMinute: 600_000)
    var questions = 0
    for step in 0..<1000 {
      let before = desk.pushes.count
      if step % 5 == 0 { send(&desk) }
      desk.advance(.milliseconds(20))
      questions += desk.questions.count
      try await answer(&desk, by: temporary.registry)
      desk.answerAll(from: before)
    }
    #expect(desk.pushes.count == 200)
    #expect(questions <= 60, "in twenty seconds: \(questions)")
  }

  @Test func pushesThatWaitForALargeQuotaLeaveRoom() {
    // The quota of ten seconds exceeds the room of one worker.
    var desk = Desk(retryDelays: [2, 15]) { configuration in
      configuration.pushesPerMinute = [.default: [.fcm: 600_000]]
      configuration.limits.maximumRecords = 100
    }
    desk.answersQuestions = false
    for number in 0..<90 { desk.registry[.user("user\(number)")] = [Desk.target("t\(number)", .fcm)] }
    for number in 0..<90 { desk.deliver(desk.send(to: .user("user\(number)"))) }
    desk.advance(.seconds(2))
    #expect(desk.pushes.isEmpty && desk.retries.count >= 40)
  }

  @Test func platformWithoutQuotaAsksNothing() {
    var desk = Desk()
    desk.answersQuestions = false
    desk.registry = [.user("alice"): [Desk.target("t", .fcm)]]
    send(&desk)
    #expect(desk.pushes.count == 1 && desk.questions.isEmpty)
  }

  @Test func failedStoreIsAskedAgain() {
    var desk = worker(devices: 1)
    send(&desk)
    #expect(desk.pushes.isEmpty && desk.questions.count == 1)
    let question = desk.questions.removeFirst()
    desk.answer(question, nil)
    #expect(desk.questions.isEmpty)
    desk.advance(.seconds(10))
    #expect(desk.questions.count == 1)
    let again = desk.questions.removeFirst()
    let moment = desk.wall
    desk.answer(again, .moment(moment))
    #expect(desk.pushes.count == 1)
  }
}
