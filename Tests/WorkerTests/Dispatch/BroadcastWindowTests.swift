import FanfareCore
import Support
import Testing

@testable import Worker

@Suite struct BroadcastWindowTests {
  /// A sender that answers `perMillisecond` pushes in a millisecond, in their order, each after a delay at the
  /// earliest, and broadcasts that fill all room.
  private struct Line {
    let perMillisecond: Int
    let delay: ClosedRange<Int64>
    var window: BroadcastWindow
    var now: Int64 = 0
    /// Single pushes that are always in flight beside.
    var singles = 0
    /// Whether single sends come.
    var hasSingles = true
    private(set) var inFlight: [(number: Int, ticket: Ticket, readyAt: Int64)] = []
    private(set) var answered = 0
    private var next = 0
    private var singleAt = -BroadcastWindow.memory
    private var generator = SeededGenerator(seed: 3)

    init(perMillisecond: Int, delay: ClosedRange<Int64>, most: Int = 1000) {
      (self.perMillisecond, self.delay) = (perMillisecond, delay)
      window = BroadcastWindow(most: most)
    }

    init(perMillisecond: Int, delay: Int64) { self.init(perMillisecond: perMillisecond, delay: delay...delay) }

    /// Lets a number of milliseconds pass.
    mutating func pass(_ milliseconds: Int) {
      for _ in 0..<milliseconds {
        now += 1
        if hasSingles { singleAt = now }
        let ready = inFlight.filter { $0.readyAt <= now }.prefix(perMillisecond)
        if let last = ready.last?.number { inFlight.removeAll { $0.readyAt <= now && $0.number <= last } }
        for push in ready {
          window.ended(push.ticket, isAnswer: true, isMostlyBroadcast: inFlight.count >= singles, at: now)
        }
        answered += ready.count
        while inFlight.count < window.limit(singleAt: singleAt, at: now) {
          next += 1
          let ticket = Ticket(slot: next % 1000, generation: UInt32(next / 1000 % 1000), isBroadcast: true)
          inFlight.append((next, ticket, now + Int64.random(in: delay, using: &generator)))
          window.submitted(ticket, inFlight: inFlight.count, at: now)
        }
      }
    }
  }

  @Test func withoutSingleSendsWindowIsFull() {
    var line = Line(perMillisecond: 100, delay: 1)
    line.hasSingles = false
    line.pass(1000)
    #expect(line.inFlight.count == 1000)
    line.hasSingles = true
    line.pass(2000)
    #expect(line.inFlight.count < 500)
    line.hasSingles = false
    line.pass(Int(BroadcastWindow.memory) - 1)
    #expect(line.inFlight.count < 500, "more are expected for a while")
    line.pass(10)
    #expect(line.inFlight.count == 1000)
  }

  /// Also when pushes that were in flight before are answered late.
  @Test(arguments: [(5, 200), (40, 300), (100, 600)])
  func windowFollowsMillisecondsOfMachineWhileSingleSendsCome(rate: Int, bound: Int) {
    var line = Line(perMillisecond: rate, delay: 1)
    line.hasSingles = false
    line.pass(300)
    line.hasSingles = true
    line.pass(4000)
    let before = line.answered
    var most = 0
    for _ in 0..<11_000 {
      line.pass(1)
      most = max(most, line.inFlight.count)
    }
    #expect(most <= bound, "\(most)")
    #expect(line.answered - before > 10_900 * rate, "as many as ever, but for the moment in which few are tried")
  }

  @Test(arguments: [8...18, 15...40, 50...50, 30...200] as [ClosedRange<Int64>])
  func slowServiceWithoutQueueKeepsFullWindow(delay: ClosedRange<Int64>) {
    var line = Line(perMillisecond: 1000, delay: delay, most: 200)
    line.hasSingles = false
    line.pass(500)
    let start = line.answered
    line.pass(2000)
    let free = line.answered - start
    line.hasSingles = true
    line.pass(3000)
    let again = line.answered
    line.pass(2000)
    #expect(Double(line.answered - again) > 0.9 * Double(free), "\(line.answered - again) of \(free)")
  }

  @Test func queueOfSingleSendsDoesNotShrinkBroadcastWindow() {
    var line = Line(perMillisecond: 10, delay: 1)
    line.singles = 2000
    line.pass(5000)
    #expect(line.inFlight.count == 1000)
  }

  @Test func onlyAnswersCountAndUnansweredPushesCostAMoment() {
    var window = BroadcastWindow(most: 640)
    func bulk(_ number: Int) -> Ticket { Ticket(slot: number, generation: 0, isBroadcast: true) }
    #expect(window.limit(singleAt: 0, at: 0) == 10)
    window.submitted(bulk(1), inFlight: 11, at: 0)
    window.ended(bulk(1), isAnswer: true, isMostlyBroadcast: true, at: 1)
    #expect(window.limit(singleAt: 0, at: 1) == 10, "there were too many to tell how long few take")
    window.submitted(bulk(2), inFlight: 10, at: 1)
    window.ended(bulk(2), isAnswer: false, isMostlyBroadcast: true, at: 2)
    #expect(window.limit(singleAt: 0, at: 2) == 10, "a lost connection is no answer")
    window.submitted(bulk(3), inFlight: 10, at: 2)
    #expect(window.limit(singleAt: 0, at: BroadcastWindow.trial) == 640)
    window.ended(bulk(3), isAnswer: true, isMostlyBroadcast: true, at: BroadcastWindow.memory - 1)
    #expect(window.limit(singleAt: BroadcastWindow.memory, at: BroadcastWindow.memory) == 640, "far away")
    let later = 2 * BroadcastWindow.memory
    #expect(window.limit(singleAt: later, at: later) == 10, "it is tried again")
    window.submitted(bulk(4), inFlight: 1, at: later)
    window.ended(bulk(4), isAnswer: true, isMostlyBroadcast: true, at: later + 1)
    /// Eight answers after that time, among others that are not timed.
    func round(of time: Int64) -> Int {
      for number in 5..<13 {
        window.submitted(bulk(number), inFlight: 100, at: later + 1)
        window.ended(bulk(4), isAnswer: true, isMostlyBroadcast: true, at: later + 1)
        window.ended(bulk(number), isAnswer: true, isMostlyBroadcast: true, at: later + 1 + (number == 7 ? time : 900))
      }
      return window.limit(singleAt: later, at: later + 10)
    }
    #expect([1, 1, 1, 2, 2, 100, 100].map(round) == [100, 125, 156, 80, 80, 80, 80])
  }

  @Test func singleSendsShrinkBroadcastWindowOnAllPlatforms() throws {
    var desk = BroadcastTests.desk(devices: 400) {
      $0.broadcasts.maximumBroadcastPushesPerSender = 64
      $0.broadcasts.pageDevices = 200
      $0.broadcasts.lookUpPage = 200
      $0.broadcasts.segments = 1
      ($0.circuit.patience, $0.circuit.silence) = (.seconds(600), .seconds(600))
    }
    desk.register("ann", .fcm)
    // Single sends that have come for long without any broadcast leave nothing to be tried.
    for _ in 0..<12 {
      desk.deliver(desk.send(to: .user("ann")))
      desk.answerAll(from: desk.pushes.count - 1)
      desk.advance(.seconds(1))
    }
    #expect(desk.pushes.count == 12)
    _ = BroadcastTests.divided(&desk)
    BroadcastTests.begin(&desk)
    #expect(desk.places.map(\.broadcasts).max() == 1)
    desk.advance(.seconds(20))
    let apns = try #require(desk.dispatcher.lanes.indices.first { desk.places[$0].broadcasts == 64 })
    desk.deliver(desk.send(to: .user("ann")))
    for push in desk.pushes where Ticket(rawValue: push.ticket).isBroadcast {
      desk.answer(push, PushOutcome(.accepted, status: 200))
    }
    #expect(desk.dispatcher.lanes[apns].hasQueuedBroadcast && desk.places[apns].broadcasts == 1)
    BroadcastTests.answerAll(&desk)
    #expect(desk.pushes.count == 413)
  }
}
