import FanfareCore
import Testing

@testable import Worker

@Suite struct BulkWindowTests {
  /// A sender that answers so many pushes in a millisecond, each after a delay at the earliest, and broadcasts that fill whatever room there is.
  private struct Line {
    let perMillisecond: Int
    let delay: Int64
    var window = BulkWindow(most: 1000)
    var now: Int64 = 0
    /// Single pushes that are always in flight beside.
    var singles = 0
    /// Whether single sends come.
    var hasSingles = true
    private(set) var inFlight: [(ticket: Ticket, readyAt: Int64)] = []
    private var next = 0

    init(perMillisecond: Int, delay: Int64) {
      (self.perMillisecond, self.delay) = (perMillisecond, delay)
    }

    /// Lets so many milliseconds pass.
    mutating func pass(_ milliseconds: Int) {
      for _ in 0..<milliseconds {
        now += 1
        var room = perMillisecond
        while room > 0, let first = inFlight.first, first.readyAt <= now {
          inFlight.removeFirst()
          room -= 1
          window.answered(first.ticket, isMostlyBulk: inFlight.count >= singles, at: now)
        }
        if hasSingles { window.submitted(Ticket(slot: 0, generation: 0), inFlight: inFlight.count, at: now) }
        while inFlight.count < window.limit(at: now) {
          next += 1
          let ticket = Ticket(slot: next % 1000, generation: UInt32(next / 1000 % 1000), isBulk: true)
          inFlight.append((ticket, now + delay))
          window.submitted(ticket, inFlight: inFlight.count, at: now)
        }
      }
    }
  }

  @Test func `without single sends all may be in flight`() {
    var line = Line(perMillisecond: 100, delay: 1)
    line.hasSingles = false
    line.pass(1000)
    #expect(line.inFlight.count == 1000)
    line.hasSingles = true
    line.pass(200)
    #expect(line.inFlight.count < 500)
    line.hasSingles = false
    line.pass(Int(BulkWindow.memory) - 1)
    #expect(line.inFlight.count < 500, "more are expected for a while")
    line.pass(10)
    #expect(line.inFlight.count == 1000)
  }

  @Test(arguments: [40, 100]) func `what a machine does in a few milliseconds is in flight while single sends come`(rate: Int) {
    var line = Line(perMillisecond: rate, delay: 1)
    line.pass(200)
    var (least, most) = (Int.max, 0)
    for _ in 0..<11_000 {
      line.pass(1)
      (least, most) = (min(least, line.inFlight.count), max(most, line.inFlight.count))
    }
    // Never so few that it has nothing to do, and a fraction of the thousand.
    #expect(least >= rate && most <= max(2 * line.window.least, 5 * rate), "\(least) to \(most)")
  }

  @Test func `a service far away gets all there is room for`() {
    var line = Line(perMillisecond: 100, delay: 50)
    line.pass(300)
    var least = Int.max
    var full = 0
    for _ in 0..<21_000 {
      line.pass(1)
      least = min(least, line.inFlight.count)
      if line.inFlight.count == 1000 { full += 1 }
    }
    #expect(line.window.limit(at: line.now) == 1000 && full > 20_500, "but for a moment every ten seconds: \(full)")
    #expect(least < 1000, "in which it is tried whether it still is")
  }

  @Test func `a line that is not the broadcasts' making does not starve them`() {
    var line = Line(perMillisecond: 10, delay: 1)
    line.singles = 2000
    line.pass(20_000)
    #expect(line.inFlight.count == 1000)
  }

  @Test func `a push that is never answered costs a moment`() {
    var window = BulkWindow(most: 80)
    let single = Ticket(slot: 0, generation: 0)
    func bulk(_ number: Int) -> Ticket { Ticket(slot: number, generation: 0, isBulk: true) }
    window.submitted(single, inFlight: 0, at: 0)
    #expect(window.limit(at: 0) == 10)
    window.submitted(bulk(1), inFlight: 1, at: 0)
    #expect(window.limit(at: BulkWindow.trial) == 80)
    window.submitted(single, inFlight: 0, at: 9_000)
    window.submitted(bulk(2), inFlight: 2, at: BulkWindow.memory)
    #expect(window.limit(at: BulkWindow.memory) == 10, "it is tried again")
    window.answered(bulk(2), isMostlyBulk: true, at: BulkWindow.memory + 1)
    #expect(window.limit(at: BulkWindow.memory + 1) == 80)
    window.submitted(bulk(3), inFlight: 3, at: BulkWindow.memory + 1)
    window.answered(bulk(1), isMostlyBulk: true, at: BulkWindow.memory + 8)
    #expect(window.limit(at: BulkWindow.memory + 8) == 80, "another's answer is not timed")
    window.answered(bulk(3), isMostlyBulk: true, at: BulkWindow.memory + 8)
    #expect(window.limit(at: BulkWindow.memory + 8) == 70)
  }

  @Test func `single sends push the broadcasts' share back`() throws {
    var desk = BroadcastTests.desk(devices: 200) {
      $0.maximumBulkPushesPerSender = 16
      $0.pageDevices = 100
      $0.lookUpPage = 100
      $0.segments = 1
    }
    desk.register("ann", .apns)
    _ = BroadcastTests.divided(&desk)
    BroadcastTests.begin(&desk)
    let service = try #require(
      desk.state.senders.indices.first { desk.state.senders[$0].bulkInFlight > 0 && desk.state.senders[$0].queue.hasBulk })
    #expect(desk.state.senders[service].bulkInFlight == 16)
    desk.deliver(desk.send(to: .user("ann")))
    for push in desk.pushes { if Ticket(rawValue: push.ticket).isBulk { desk.answer(push, PushOutcome(.accepted, status: 200)) } }
    #expect(desk.state.senders[service].bulkInFlight <= 2, "a moment with few, to see how long that takes")
    BroadcastTests.answerAll(&desk)
    #expect(desk.pushes.count == 201)
  }
}
