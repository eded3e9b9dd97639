import FanfareCore
import Foundation

/// The names of time zones that devices and sends may have.
enum TimeZoneName {
  /// The rule as the end of an error message.
  static let expectation = "must be a time zone of the IANA database such as \"Europe/Vienna\""

  static func isKnown(_ name: String) -> Bool {
    // Foundation also knows abbreviations and offsets, which say nothing of summer time.
    (name == "UTC" || name.utf8.contains(UInt8(ascii: "/"))) && Tag.isValid(Tag.timeZone(name))
      && TimeZone(identifier: name) != nil
  }

  /// The known time zone that a tag names; nil for other tags.
  static func named(by tag: String) -> String? { Tag.timeZone(of: tag).flatMap { isKnown($0) ? $0 : nil } }
}
