import FanfareCore
import Support
import Testing

@testable import Worker

/// No access token is to be had, whatever the token endpoint answers: to the pushes it is an outage of their service.
struct TokenOutageTests {
  /// As senders report it.
  private static let unavailable = PushOutcome(.retryLater, reason: "TokenUnavailable")

  /// Runs sends with an hour to live through an outage. Returns the devices' outcomes.
  private func outcomes(sends: Int, outage: Duration) -> [DeviceResult.Outcome] {
    var desk = Desk()
    for number in 0..<sends {
      desk.register("u\(number)", .fcm)
      desk.deliver(desk.send(to: .user("u\(number)"), timeToLive: 3600))
    }
    var answered = 0
    while desk.statuses.count < sends, desk.uptime < 3_600_000 {
      let pushes = desk.pushes[answered...]
      answered = desk.pushes.count
      let isOver = desk.uptime >= outage.milliseconds
      for push in pushes { desk.answer(push, isOver ? PushOutcome(.accepted, status: 200) : Self.unavailable) }
      desk.advance(.seconds(1))
    }
    return desk.statuses.flatMap { $0.devices.map(\.outcome) }
  }

  @Test func pushWaitsForTokenWhileCircuitIsOpen() {
    let outcomes = outcomes(sends: 30, outage: .seconds(600))
    #expect(outcomes == Array(repeating: .delivered, count: 30))
  }

  @Test func tokenOutageWithFewPushesCostsNothing() {
    #expect(outcomes(sends: 1, outage: .seconds(300)) == [.delivered])
  }
}
