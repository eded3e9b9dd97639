import Foundation
import Logging
import Operations
import Support
import Synchronization
import Testing

@Suite struct SecurityLogTests {
  @Test func linesHaveTheEventAndAKeyedHashInPlaceOfTheName() {
    let log = LogRecorder()
    let security = SecurityLog(key: Array("sixteen bytes or more".utf8), logger: log.logger)
    security.record(
      .loginFailed, requestID: "r-1", address: "192.0.2.1", user: "USER-MARK", hub: "shop", details: ["a": "b"])
    for part in ["login.failed", "r-1", "192.0.2.1", "shop", "\"a\": b", security.hash(of: "USER-MARK")] {
      #expect(log.text.contains(part), "\(part)")
    }
    #expect(!log.text.contains("MARK"))
    let same = SecurityLog(key: Array("sixteen bytes or more".utf8), logger: log.logger)
    #expect(same.hash(of: "bob") == security.hash(of: "bob"))
    #expect(security.hash(of: "bob") != security.hash(of: "alice"))
    #expect(SecurityLog(logger: log.logger).hash(of: "bob") != security.hash(of: "bob"), "a random key")
    #expect(security.hash(of: "bob").count == 16)
  }

  @Test func noEventHasTheNameOfAUser() {
    let log = LogRecorder()
    let security = SecurityLog(logger: log.logger)
    for event in SecurityLog.Event.allCases { security.record(event, user: "USER-MARK") }
    for event in SecurityLog.Event.allCases { #expect(log.count(of: event.rawValue) >= 1, "\(event)") }
    #expect(!log.text.contains("MARK"))
  }

  @Test func floodOfOneEventIsSuppressedAndCounted() {
    let log = LogRecorder()
    let time = Mutex(ContinuousClock.now)
    let security = SecurityLog(logger: log.logger, now: { time.withLock { $0 } })
    for _ in 0..<1000 { security.record(.loginFailed) }
    security.record(.keyRevoked)
    #expect(log.count(of: "login.failed") == 100)
    #expect(log.count(of: "key.revoked") == 1, "other events have limits of their own")
    time.withLock { $0 += .seconds(1) }
    for _ in 0..<1000 { security.record(.loginFailed) }
    #expect(log.count(of: "login.failed") == 110)
    security.reportSuppressed()
    #expect(log.count(of: "Security events suppressed") == 1)
    #expect(log.count(of: "1890") == 1)
    security.reportSuppressed()
    #expect(log.count(of: "Security events suppressed") == 1, "each is reported once")
  }
}
