import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// The next page begins while the last pushes of the one before it are out.
extension BroadcastTests {
  /// How many devices of the next page may be pushed to before a page of `devices` is finished. Pages have eight,
  /// and two of the next one may begin: at most ten together.
  static func headStart(behind devices: Int) -> Int { min(2, max(0, 10 - devices)) }

  /// A desk with two pages under way, neither of them with an answer: how many of the first have been pushed, and how
  /// many of the second. There is room for all of the first.
  static func twoPagesUnderWay(seed: UInt64 = 7, rate: Int? = nil) -> (
    desk: Desk, send: SendRequest, first: Int, second: Int
  ) {
    var desk = Self.desk(devices: 200, seed: seed) { $0.broadcasts.lookUpPage = 100 }
    let send = Self.divided(&desk, rate: rate)
    Self.begin(&desk)
    desk.advance(.milliseconds(500))
    let slots = desk.pushes.map { Ticket(rawValue: $0.ticket).slot }
    let first = slots.count { $0 == slots[0] }
    return (desk, send, first, slots.count - first)
  }

  @Test(arguments: 0..<20) func crashRepeatsAtMostAPageAndTheHeadStartOfTheNext(seed: UInt64) {
    let (desk, _, first, second) = Self.twoPagesUnderWay(seed: seed)
    #expect(desk.statuses.isEmpty && first > 0)
    // Slices happen to hold more or fewer devices; the next one may hold less than its head start.
    #expect(second <= Self.headStart(behind: first))
    #expect(first > 8 || second > 0)
  }

  @Test func broadcastWithRateGetsNoHeadStart() {
    let (desk, _, first, second) = Self.twoPagesUnderWay(rate: 1000)
    #expect(desk.statuses.isEmpty && first > 0 && second == 0)
  }

  @Test func headStartIsPausedAndCancelledLikeTheRest() throws {
    for control in [BroadcastControl.State.paused, .cancelled] {
      var (desk, _, first, second) = Self.twoPagesUnderWay()
      let broadcast = try #require(desk.broadcasts.plans.keys.first)
      desk.broadcasts.controls[broadcast] = BroadcastControl(control, because: .caller)
      desk.advance(.milliseconds(500))
      Self.answerAll(&desk)
      #expect(second > 0 && desk.pushes.count == first + second)
      if control == .paused {
        desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .caller)
        desk.advance(.seconds(60))
        Self.answerAll(&desk)
        #expect(desk.pushes.count == 200 && Set(desk.pushes.map(\.handle)).count == 200)
      } else {
        #expect(desk.statuses.reduce(0) { $0 + $1.counts.total + $1.devices.count } == first + second)
      }
      #expect(desk.statuses.count == desk.segments[0].pages && desk.group[Self.partition]?.offset == 3)
      #expect(
        desk.held.records == 0 && desk.held.devices == 0
          && desk.takenPlaces == 0)
    }
  }

  @Test func headStartIsFinishedBeforeItsPartitionIsGivenBack() {
    var (desk, _, first, second) = Self.twoPagesUnderWay()
    desk.revoke([Self.partition])
    Self.answerAll(&desk)
    #expect(second > 0 && desk.statuses.count == 2)
    #expect(desk.pushes.count == desk.statuses.reduce(0) { $0 + $1.counts.total } && desk.pushes.count > first + second)
    #expect(desk.broadcasts.finished.values.first?.count == 2)
  }
}
