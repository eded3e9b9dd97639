import FanfareCore
import Testing

@testable import Worker

/// How long pushes are deferred during an outage.
extension DeferredOrderTests {
  @Test(arguments: [
    (0, 1000, 15), (1400, 1000, 15), (20_000, 1000, 200), (20_000, 60, 30), (99_000, 60, 99), (99_000, 1000, 300),
  ])
  func roundsGrowWithNumberUpToHalfOfOutage(
    others: Int, outage: Int, seconds: Int
  ) throws {
    var desk = Desk(retryDelays: [15, 60, 300])
    _ = broken(&desk, sends: 1)
    for _ in 0..<others {
      let push = DeferredOrder.Push(id: .random(), acceptedAt: desk.wall, device: .random())
      desk.dispatcher.lanes[0].remember(push, due: 1_000_000)
    }
    // A second more passes before they are deferred.
    desk.advance(.milliseconds(desk.dispatcher.lanes[0].breaker.openedAt + Int64(outage - 1) * 1000 - desk.uptime))
    #expect(try roundTrip(&desk) == .seconds(seconds))
  }

  @Test func roundsGrowWithOutageWhenOrderIsFull() throws {
    var desk = Desk(retryDelays: [15, 60, 300]) { $0.limits.maximumOrdered = 2 }
    _ = broken(&desk, sends: 1)
    #expect(try roundTrip(&desk) == .seconds(15))
    for _ in 0..<400 { desk.advance(.seconds(1)) }
    let later = try roundTrip(&desk)
    #expect(later >= .seconds(200) && later < .seconds(203))
    for _ in 0..<3600 { desk.advance(.seconds(1)) }
    #expect(try roundTrip(&desk) == .seconds(300))
  }

  /// How long the last of many sends is deferred, in whole seconds.
  private func roundTrip(_ desk: inout Desk) throws -> Duration {
    for number in 0..<20 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    desk.advance(.seconds(1))
    let last = try #require(desk.retries.last)
    let wait = try RetryRecord.decode(last.value[...], recordTime: desk.wall).notBefore - desk.wall
    return .seconds(wait.components.seconds)
  }
}
