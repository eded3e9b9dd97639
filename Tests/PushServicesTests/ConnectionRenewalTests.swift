import FanfareCore
import Testing

@testable import PushServices

@Suite struct ConnectionRenewalTests {
  @Test func renewalIsDueOncePerEpochAndNotAgainAtOnce() {
    var renewal = ConnectionRenewal()
    let now = Fixtures.now
    let answers = [(0, 0), (0, 60), (1, 29), (1, 30)].map { (epoch, seconds) in
      renewal.isDue(epoch: epoch, now: now + .seconds(seconds))
    }
    #expect(answers == [true, false, false, true])
    #expect(renewal.epoch == 2)
  }
}
