import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// Pushes that must wait longer than a worker keeps them: deferred, readmitted, and counted once.
struct DeferralTests {
  private static let delays = [15, 60, 300]

  private func desk(configure: (inout WorkerConfiguration) -> Void = { _ in }) -> Desk {
    Desk(retryDelays: Self.delays, configure: configure)
  }

  private func later(_ seconds: Int) -> PushOutcome {
    PushOutcome(.retryLater, reason: "TooManyRequests", status: 429, retryAfter: .seconds(seconds))
  }

  private func retry(_ desk: Desk, _ index: Int = 0) throws -> RetryRecord {
    try RetryRecord.decode(desk.retries[index].value[...], recordTime: desk.wall)
  }

  @Test func longWaitIsDeferredAndContinuesOnReadmission() throws {
    var desk = desk()
    desk.register("bob", .apns, .fcm)
    let send = desk.send(to: .user("bob"))
    desk.deliver(send)
    desk.answer(desk.pushes[0], later(100))
    #expect(desk.retries.isEmpty, "the other device is still open")
    desk.answer(desk.pushes[1], PushOutcome(.accepted, status: 200))
    #expect(desk.retries.map(\.topic) == ["fanfare.retry.300s"])
    #expect(desk.statuses.isEmpty)
    #expect(desk.position == 1, "Kafka has the deferred record")
    let record = try retry(desk)
    #expect(record.send == send)
    #expect(record.notBefore >= desk.wall + .seconds(100) && record.notBefore <= desk.wall + .seconds(110))

    desk.advance(.seconds(111))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.count == 3)
    #expect(desk.pushes[2].handle == "bob-0")
    #expect(desk.pushes[2].id == desk.pushes[0].id, "the same push to the service")
    desk.answer(desk.pushes[2], PushOutcome(.accepted, status: 200))
    #expect(desk.statuses.count == 1)
    #expect(desk.statuses[0].devices.map(\.outcome) == [.delivered, .delivered])
    #expect(desk.statuses[0].devices.map(\.attempts) == [2, 1])
    #expect(desk.statuses[0].parts == 1 && desk.statuses[0].attempt == nil)
    #expect(desk.position == 2)
  }

  @Test func devicesOnSeveralPlatformsAreReadmittedTogether() {
    var desk = desk()
    desk.register("bob", .apns, .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    for push in desk.pushes { desk.answer(push, later(20)) }
    desk.advance(.seconds(30))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.map(\.handle) == ["bob-0", "bob-1", "bob-0", "bob-1"])
  }

  @Test func recordTooLargeForRetryTopicEnds() {
    var desk = desk()
    desk.acknowledges = false
    desk.register("bob", .apns, .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[1], PushOutcome(.accepted, status: 200))
    desk.answer(desk.pushes[0], later(20))
    desk.acknowledge(RDKafkaError(code: .messageTooLarge, message: "too large"))
    desk.acknowledge()
    #expect(desk.statuses.flatMap(\.devices).map(\.outcome) == [.failed, .delivered])
    #expect(desk.position == 1)
  }

  @Test func deviceNearlyDueRestsInMemory() {
    var desk = desk()
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], PushOutcome(.retryLater, reason: "Busy", status: 429, retryAfter: .seconds(20)))
    desk.advance(.seconds(15))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.count == 1)
    desk.advance(.seconds(8))
    #expect(desk.pushes.count == 2)
  }

  @Test func shortWaitStaysInMemory() {
    var desk = desk()
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], later(5))
    #expect(desk.retries.isEmpty)
    desk.advance(.seconds(6))
    #expect(desk.pushes.count == 2)
  }

  @Test func deviceWithNewOwnerGetsNoPush() {
    var desk = desk()
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], later(20))
    desk.registry[.user("bob")] = []
    desk.advance(.seconds(30))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.count == 1)
    #expect(desk.statuses[0].devices.map(\.outcome) == [.rejected])
    #expect(desk.statuses[0].devices.map(\.reason) == ["NoLongerRegistered"])
  }

  @Test func recordThatComesBackTooLateExpires() {
    var desk = desk()
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob"), timeToLive: 60))
    desk.answer(desk.pushes[0], later(20))
    desk.advance(.seconds(61))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.count == 1)
    #expect(desk.statuses[0].devices.map(\.outcome) == [.expired])
    #expect(desk.statuses[0].state == .settled, "it was sent once")
  }

  @Test func duplicateCopyIsRecognised() {
    var desk = desk()
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], later(20))
    desk.advance(.seconds(30))
    desk.deliver([desk.retries[0].value, desk.retries[0].value])
    desk.answer(desk.pushes[1], PushOutcome(.accepted, status: 200))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.count == 2)
    #expect(desk.statuses.count == 1)
    #expect(desk.position == 4)
  }

  @Test func deviceNotYetDueIsDeferredAgainWithoutAttempt() throws {
    var desk = desk()
    desk.register("bob", .apns, .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], later(200))
    desk.answer(desk.pushes[1], later(20))
    #expect(desk.retries.map(\.topic) == ["fanfare.retry.60s"])
    desk.advance(.seconds(23))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.map(\.handle) == ["bob-0", "bob-1", "bob-1"])
    desk.answer(desk.pushes[2], PushOutcome(.accepted, status: 200))
    #expect(desk.statuses.isEmpty)
    let second = try retry(desk, 1)
    #expect(second.deferrals == 2)
    #expect(second.identity != (try retry(desk)).identity)
    desk.advance(.seconds(200))
    desk.deliver([desk.retries[1].value])
    desk.answer(desk.pushes[3], PushOutcome(.accepted, status: 200))
    #expect(desk.statuses[0].devices.map(\.attempts) == [2, 2])
  }

  @Test func onlyWaitingPartsOfLargeSendAreDeferred() {
    var desk = desk { $0.devicesPerStatus = 2 }
    desk.registry[.user("bob")] = (0..<5).map { Desk.target("d\($0)", .fcm) }
    for index in 0..<5 {
      let target = Desk.target("d\(index)", .fcm)
      desk.registry[.registration(target.registration)] = [target]
    }
    desk.deliver(desk.send(to: .user("bob")))
    for push in desk.pushes { desk.answer(push, push.handle == "d2" ? later(20) : PushOutcome(.accepted, status: 200)) }
    #expect(desk.statuses.map(\.part).sorted() == [0, 2])
    #expect(desk.retries.count == 1)
    desk.advance(.seconds(30))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.suffix(1).map(\.handle) == ["d2"])
    desk.answer(desk.pushes[5], PushOutcome(.accepted, status: 200))
    #expect(desk.statuses.map(\.part).sorted() == [0, 1, 2])
    #expect(Set(desk.statuses.map(\.parts)) == [3])
    #expect(Set(desk.statuses.map(\.attempt)).count == 1 && desk.statuses[0].attempt != nil)
    #expect(desk.statuses.flatMap(\.devices).count == 5)
  }

  @Test func unregisteredHandleIsReadmitted() {
    var desk = desk()
    desk.deliver(desk.send(to: .device(.fcm, handle: "stray")))
    desk.answer(desk.pushes[0], later(20))
    desk.advance(.seconds(30))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.map(\.handle) == ["stray", "stray"])
  }

  @Test func leavingWorkerDefersRestingDevices() {
    var desk = desk()
    desk.register("bob", .apns, .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], later(5))
    desk.answer(desk.pushes[1], PushOutcome(.accepted, status: 200))
    desk.shutDown()
    #expect(desk.retries.map(\.topic) == ["fanfare.retry.15s"])
    #expect(desk.position == 1)
    desk.turn()
    #expect(desk.isToLeave)
  }

  @Test func recordThatCameEarlySaysSo() throws {
    var desk = desk()
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], later(60))
    #expect(!(try retry(desk).cameEarly))
    desk.deliver([desk.retries[0].value])
    let second = try retry(desk, 1)
    #expect(second.cameEarly)
    #expect(second.notBefore == (try retry(desk)).notBefore)
    desk.advance(.seconds(70))
    desk.deliver([desk.retries[1].value])
    desk.answer(desk.pushes[1], later(60))
    #expect(!(try retry(desk, 2).cameEarly), "this time it came in time")
  }

  @Test func recordFromLongestTopicHasNotComeEarly() throws {
    var desk = desk()
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], later(600))
    desk.advance(.seconds(300))
    desk.deliver([desk.retries[0].value])
    let second = try retry(desk, 1)
    #expect(!second.cameEarly)
    let wait = try RetryRecord.wait(of: desk.retries[1].value[...], at: second.notBefore)
    #expect(wait == .zero, "a record that is due is not held")
    desk.deliver([desk.retries[1].value])
    #expect(try retry(desk, 2).cameEarly, "but for this one the clock is wrong")
  }

  @Test func deferralByClockAheadIsNotLengthened() throws {
    var desk = desk()
    desk.register("bob", .apns)
    let send = desk.send(to: .user("bob"))
    desk.wall = desk.wall + .seconds(3600)
    desk.deliver(send)
    desk.answer(desk.pushes[0], later(60))
    desk.wall = desk.wall + .seconds(-3600)
    desk.advance(.seconds(65))
    desk.deliver([desk.retries[0].value])
    // How long it has waited is not known here: it is deferred again, now by our clock.
    #expect(try retry(desk, 1).notBefore <= desk.wall + .seconds(70))
    desk.advance(.seconds(70))
    desk.deliver([desk.retries[1].value])
    #expect(desk.pushes.count == 2)
  }

  @Test func firstAttemptByClockBehindDoesNotAgePush() throws {
    var desk = desk()
    desk.register("bob", .apns)
    let send = desk.send(to: .user("bob"))
    desk.wall = desk.wall + .seconds(-7200)
    desk.deliver(send)
    desk.answer(desk.pushes[0], later(60))
    desk.wall = desk.wall + .seconds(7200)
    desk.advance(.seconds(65))
    desk.deliver([desk.retries[0].value])
    desk.answer(desk.pushes[1], PushOutcome(.retryLater, reason: "ServerError", status: 503))
    #expect(desk.statuses.isEmpty, "it is tried again")
  }

  @Test func clockSetBackDoesNotLengthenDeferral() throws {
    var desk = desk()
    desk.register("bob", .apns, .fcm)
    desk.wall = desk.wall + .seconds(3600)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], later(50))
    desk.wall = desk.wall + .seconds(-3600)
    desk.answer(desk.pushes[1], PushOutcome(.accepted, status: 200))
    #expect(try retry(desk).notBefore <= desk.wall + .seconds(60))
    #expect(desk.retries.map(\.topic) == ["fanfare.retry.60s"])
  }
}
