import ArgumentParser
import FanfareCore
import Foundation
import Testing

@testable import Roles
@testable import fanfare

/// What the client commands read from the command line and print.
@Suite struct ClientTextTests {
  private static let now = UnixTime(milliseconds: 1_700_000_000_000)

  @Test(arguments: [
    ("now", 0), ("-1h", -3600), ("-90s", -90), ("+30m", 1800), ("-1d12h", -129_600), ("-2w", -1_209_600), ("-5", -5),
  ])
  func relativeTimesAreFromNow(text: String, seconds: Int64) {
    #expect(TimeArgument(text, at: Self.now)?.time == Self.now + .seconds(seconds))
  }

  @Test(arguments: ["", "1h", "-", "-h", "-1x", "-1h5", "--1h", "+-1h", "yesterday", "-99999999999999999999d"])
  func otherTextIsNoTime(text: String) { #expect(TimeArgument(text, at: Self.now) == nil) }

  @Test func absoluteTimesAreRFC3339() {
    #expect(TimeArgument("2023-11-14T22:13:20Z", at: Self.now)?.time == Self.now)
  }

  /// The parser must not take `-1h` for options.
  @Test(arguments: [
    ["replay", "--from", "-1h", "--to", "now"], ["sends", "list", "--from", "-1h", "--until", "-5m"],
    ["dead-letters", "list", "--from", "-1d"], ["registrations", "tombstones", "--since", "-2d"],
    ["registrations", "restore", "--from", "-1h", "--to", "now"],
    ["send", "--user", "a", "--body", "b", "--send-at", "+1h"],
  ])
  func commandsTakeRelativeTimes(arguments: [String]) throws { _ = try Fanfare.parseAsRoot(arguments) }

  @Test(arguments: [
    ["send", "--user", "a"], ["send", "--body", "b"], ["send", "--user", "a", "--everyone", "--body", "b"],
    ["send", "--user", "a", "--data", "x"], ["send", "--user", "a", "--body", "b", "--priority", "urgent"],
    ["devices", "list"], ["broadcast", "rate", "x", "5"], ["sends", "list", "--limit", "0"],
    ["sends", "list", "--from", "-1h", "--until", "-2h"],
  ])
  func badOptionsAreRefused(arguments: [String]) {
    let error = #expect(throws: (any Error).self) { try Fanfare.parseAsRoot(arguments) }
    #expect(error.map { Fanfare.exitCode(for: $0) } == .validationFailure)
  }

  @Test func optionsBecomeTheBodyOfASend() throws {
    let command = try #require(
      try Fanfare.parseAsRoot([
        "send", "--tag", "a", "--tag", "b", "--title", "T", "--body", "B", "--data", "k=v=w", "--ttl", "15m",
        "--platform", "APNS", "--priority", "high",
      ]) as? SendCommand)
    let json = try command.message.json(to: command.audience)
    #expect(
      String(decoding: json, as: UTF8.self)
        == #"{"message":{"body":"B","data":{"k":"v=w"},"title":"T"},"platforms":["apns"],"priority":"high","#
        + #""to":{"tags":["a","b"]},"ttl":900}"#)
  }

  @Test func tableIsAlignedAndTruncated() {
    let columns: [Column<(String, String)>] = [Column("tag", \.0), Column("devices", isNumber: true, \.1)]
    #expect(TextTable(columns, []).lines(width: nil) == [])
    let table = TextTable(columns, [("news", "7"), ("a\u{1B}[2J", "1000")])
    #expect(table.lines(width: nil) == ["TAG         DEVICES", "news              7", "a\\u{1b}[2J     1000"])
    #expect(table.lines(width: 10).allSatisfy { $0.count == 10 && $0.hasSuffix("…") })
  }

  @Test func distancesAreInTheLargestUnit() {
    func text(_ seconds: Int64) -> String { (Self.now + .seconds(seconds)).relative(to: Self.now) }
    #expect(
      [0, -59, -61, -7300, -200_000, 90].map(text) == [
        "now", "59 s ago", "1 min ago", "2 h ago", "2 d ago", "in 1 min",
      ])
  }

  @Test func sendIsShownWithItsWayAndTheAttemptsOfEachDevice() throws {
    let answer = try JSONDecoder().decode(
      SendAnswer.self,
      from: Data(
        """
        {"id":"x","state":"settled","timeline":[
          {"event":"accepted","at":"2026-11-21T08:00:00.000Z"},{"event":"consumed","at":"2026-11-21T08:00:00.035Z"},
          {"event":"answered","at":"2026-11-21T08:00:01.235Z","platform":"apns","registration":"r"}],
         "devices":[{"registration":"r","platform":"apns","outcome":"delivered","reason":"","status":200,"attempts":3}]}
        """.utf8))
    #expect(
      answer.tables.map { $0.lines(width: nil) } == [
        [
          "AT                        AFTER  EVENT     PLATFORM  DEVICE",
          "2026-11-21T08:00:00.000Z         accepted",
          "2026-11-21T08:00:00.035Z  35 ms  consumed",
          "2026-11-21T08:00:01.235Z  1.2 s  answered  apns      r",
        ],
        [
          "DEVICE  PLATFORM  OUTCOME    REASON  STATUS  ATTEMPTS",
          "r       apns      delivered             200         3",
        ],
      ])
  }

  @Test func broadcastIsShownAsABar() throws {
    let answer = try JSONDecoder().decode(
      SendAnswer.self,
      from: Data(
        """
        {"id":"x","state":"accepted","counts":{"apns":{"delivered":40,"rejected":2},"fcm":{"delivered":10}},
         "broadcast":{"pages":10,"finishedPages":5,"course":"paused","cause":"failures","remainingSeconds":30}}
        """.utf8))
    var rate = SendRate()
    rate.note(0, at: .zero)
    rate.note(52, at: .seconds(2))
    #expect(
      SendWatch.text(answer, rate: rate.perSecond)
        == "[###############...............]  50 %  paused  (failures)  50 delivered, 2 rejected  26/s  30 s left")
  }

  /// A front end that restarts must not end a command that follows a send.
  @Test func watchBearsAShortOutage() throws {
    let profile = try Profile(path: nil, environment: ["HOME": "/nonexistent", "FANFARE_URL": "http://127.0.0.1:1"])
    let unreachable = APIUnreachable(profile.url, CancellationError())
    let overloaded = APIRefusal(status: 503, body: Data(), retryAfter: 1)
    var outage = SendWatch.Outage()
    #expect(!outage.lasts)
    let (first, second) = (outage.bears(unreachable, at: .seconds(100)), outage.bears(overloaded, at: .seconds(129)))
    #expect(first && second && outage.lasts)
    let third = outage.bears(unreachable, at: .seconds(130))
    // Asking again would be refused again.
    let refused = outage.bears(APIRefusal(status: 403, body: Data(), retryAfter: nil), at: .seconds(101))
    #expect(!third && !refused)
  }

  @Test func refusalNamesWhatIsMissing() {
    let body = Data(#"{"code":"forbidden","detail":"lacks the scope send:tag","requestId":"r"}"#.utf8)
    let refusal = APIRefusal(status: 403, body: body, retryAfter: nil)
    #expect(
      refusal.description.contains("lacks the scope send:tag (403 forbidden); an operator grants scopes: `fanfare keys")
    )
    let foreign = APIRefusal(status: 502, body: Data("<html>".utf8), retryAfter: 5)
    #expect(foreign.description.contains("none of Fanfare's") && foreign.description.hasSuffix("try again in 5 s"))
  }
}
