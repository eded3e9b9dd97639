import FanfareCore
import NIOCore
import NIOPosix
import Testing

@testable import PushServices

/// The queue's decisions, without connections or time.
@Suite final class WNSQueueTests {
  private var queue = WNSQueue(maximumInFlight: 64, maximumWaiting: 1000)
  private let now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

  private func items(_ count: Int, host: String, isBroadcast: Bool = false) throws -> [WNSQueue.Item] {
    let handle = "https://\(host).notify.windows.com/?token=a"
    let batch = WNSBatch(eventLoop: MultiThreadedEventLoopGroup.singleton.any()) { _ in }
    let rendering = RenderedPush(headers: [], body: [])
    let channel = try #require(ChannelURI(handle))
    return (0..<count).map { ticket in
      let push = Push(
        ticket: UInt64(ticket), id: Fixtures.pushID, handle: handle, rendering: rendering, expiresAt: Fixtures.now,
        isBroadcast: isBroadcast
      )
      return WNSQueue.Item(
        push: push, channel: channel, token: AccessToken(value: "t", expiresAt: Fixtures.now, generation: 1),
        deadline: now,
        batch: batch)
    }
  }

  private func append(_ count: Int, host: String) throws {
    let excess = queue.append(try items(count, host: host))
    #expect(excess.isEmpty)
  }

  /// Takes everything that may be sent; returns the first labels of the hosts, and the tickets.
  private func take() -> [(host: String, ticket: UInt64)] {
    var taken: [(String, UInt64)] = []
    while let item = queue.take() {
      taken.append((String(item.channel.host.prefix { $0 != "." }), item.push.ticket))
    }
    return taken
  }

  @Test func everyEighthPushIsBulkWhileBothLanesWait() throws {
    queue = WNSQueue(maximumInFlight: 4, maximumWaiting: 1000)
    #expect(queue.append(try items(200, host: "busy", isBroadcast: true)).isEmpty)
    #expect(queue.append(try items(20, host: "busy")).isEmpty)
    var taken: [Bool] = []
    for _ in 0..<24 {
      taken.append(queue.take()?.push.isBroadcast == true)
      queue.ended("busy.notify.windows.com", answered: true, now: now)
    }
    #expect(taken.indices.filter { taken[$0] } == [7, 15, 22, 23])
    #expect(queue.close().count == 196)
  }

  @Test func silentHostLeavesRoomForOthers() throws {
    try append(200, host: "dead")
    try append(1, host: "good")
    let taken = take()
    #expect(taken.filter { $0.host == "dead" }.map(\.ticket) == Array(0..<16))
    #expect(taken.map(\.host).contains("good"))
    queue.ended("good.notify.windows.com", answered: true, now: now)
    queue.ended("dead.notify.windows.com", answered: false, now: now)
    #expect(take().map(\.ticket) == [16])
  }

  @Test func silentHostsTogetherLeaveRoomForOthers() throws {
    try append(100, host: "good")
    #expect(take().count == 16)
    for number in 1...5 { try append(100, host: "dead\(number)") }
    // Half of all places, part of which the other host holds.
    #expect(take().count == 16)
    queue.ended("good.notify.windows.com", answered: true, now: now)
    #expect(take().count == 33)
    for _ in 0..<32 {
      queue.ended("good.notify.windows.com", answered: true, now: now)
      #expect(take().map(\.host) == ["good"])
    }
    queue.ended("dead1.notify.windows.com", answered: false, now: now)
    #expect(take().count == 1)
  }

  @Test func answeringHostMayUseAllPlaces() throws {
    try append(200, host: "good")
    #expect(take().count == 16)
    queue.ended("good.notify.windows.com", answered: true, now: now)
    #expect(take().map(\.ticket) == Array(16..<65))
    #expect(queue.inFlight == 64)
    queue.ended("good.notify.windows.com", answered: nil, now: now)
    #expect(take().count == 1)
    // From now on it is silent.
    for _ in 0..<48 { queue.ended("good.notify.windows.com", answered: false, now: now) }
    #expect(take().isEmpty)
    queue.ended("good.notify.windows.com", answered: false, now: now)
    #expect(take().count == 1)
  }

  @Test func hostsTakeTurns() throws {
    queue = WNSQueue(maximumInFlight: 4, maximumWaiting: 3)
    let excess = queue.append(try items(2, host: "a") + items(2, host: "b"))
    #expect(excess.map(\.push.ticket) == [1])
    #expect(take().map(\.host) == ["a", "b"])
    let waiting = queue.close()
    #expect(waiting.map(\.push.ticket) == [1])
    #expect(!queue.isFinished)
    queue.ended("a.notify.windows.com", answered: true, now: now)
    queue.ended("b.notify.windows.com", answered: true, now: now)
    #expect(queue.isFinished)
  }

  @Test func failureOfOneHostIsNoOutageWhileAnotherAnswers() throws {
    #expect(!queue.othersAnswer(than: "dead", now: now))
    try append(1, host: "good")
    #expect(take().count == 1)
    queue.ended("good.notify.windows.com", answered: true, now: now)
    #expect(queue.othersAnswer(than: "dead", now: now + .seconds(9)))
    #expect(!queue.othersAnswer(than: "dead", now: now + .seconds(10)))
    #expect(!queue.othersAnswer(than: "good.notify.windows.com", now: now))
    #expect(queue.answers("good.notify.windows.com", now: now + .seconds(9)))
    #expect(!queue.answers("good.notify.windows.com", now: now + .seconds(10)))
  }

  @Test func hostThatNeverAnsweredIsNoEvidenceOfAnOutage() throws {
    #expect(!queue.isAtFault("made-up", now: now), "nothing has answered: WNS may be unreachable")
    try append(1, host: "good")
    #expect(take().count == 1)
    queue.ended("good.notify.windows.com", answered: true, now: now)
    let later = now + .hours(1)
    #expect(queue.isAtFault("made-up.notify.windows.com", now: later))
    #expect(!queue.isAtFault("good.notify.windows.com", now: later))
  }

  @Test func eachOfTwoAnsweringHostsProvesTheServiceForTheOther() throws {
    for host in ["a", "b", "b", "c", "b"] {
      try append(1, host: host)
      #expect(take().count == 1)
      queue.ended(host + ".notify.windows.com", answered: true, now: now)
    }
    #expect(queue.othersAnswer(than: "b.notify.windows.com", now: now))
    #expect(queue.othersAnswer(than: "c.notify.windows.com", now: now))
    #expect(!queue.answers("a.notify.windows.com", now: now))
  }
}
