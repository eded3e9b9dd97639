import Foundation

/// The names of time zones that devices and sends may have.
package enum TimeZoneName {
  /// The rule as the end of an error message.
  package static let expectation = "must be a time zone of the IANA database such as \"Europe/Vienna\""

  /// The names of the database without a slash: links to zones, and fixed offsets. Foundation also knows abbreviations
  /// such as `PST` and offsets such as `GMT+5`, which say nothing of summer time.
  private static let plain: Set<String> = [
    "CET", "CST6CDT", "Cuba", "EET", "EST", "EST5EDT", "Egypt", "Eire", "GB", "GB-Eire", "GMT", "GMT+0", "GMT-0",
    "GMT0", "Greenwich", "HST", "Hongkong", "Iceland", "Iran", "Israel", "Jamaica", "Japan", "Kwajalein", "Libya",
    "MET", "MST", "MST7MDT", "NZ", "NZ-CHAT", "Navajo", "PRC", "PST8PDT", "Poland", "Portugal", "ROC", "ROK",
    "Singapore", "Turkey", "UCT", "UTC", "Universal", "W-SU", "WET", "Zulu",
  ]

  /// All names: Foundation lists most of them.
  package static let all: [String] = Set(TimeZone.knownTimeZoneIdentifiers).union(plain).filter(isKnown).sorted()

  package static func isKnown(_ name: String) -> Bool {
    (plain.contains(name) || name.utf8.contains(UInt8(ascii: "/"))) && Tag.isValid(Tag.timeZone(name))
      && TimeZone(identifier: name) != nil
  }

  /// The known time zone that a tag names; nil for other tags.
  package static func named(by tag: String) -> String? {
    Tag.timeZone(of: tag).flatMap { isKnown($0) ? $0 : nil }
  }
}
