import FanfareCore
import Testing

@testable import PushServices

@Suite struct RetryAfterTests {
  static let cases: [(String, Duration?)] = [
    ("0", .zero), ("120", .seconds(120)), ("86401", .seconds(86_400)), ("99999999999999999999", .seconds(86_400)),
    ("Sat, 21 Nov 2026 08:00:30 GMT", .seconds(30)), ("Sat, 21 Nov 2026 07:00:00 GMT", .zero),
    ("Fri, 01 Jan 2100 00:00:00 GMT", .seconds(86_400)), ("", nil), ("-1", nil), ("1.5", nil), ("soon", nil),
    ("Sat, 21 Foo 2026 08:00:30 GMT", nil), ("Sat, 21 Nov 2026 08:00:30 CET", nil),
    ("Sat, 41 Nov 2026 08:00:30 GMT", nil),
  ]

  @Test(arguments: cases) func duration(value: String, expected: Duration?) {
    #expect(RetryAfter.duration(value, now: Fixtures.now) == expected)
  }
}
