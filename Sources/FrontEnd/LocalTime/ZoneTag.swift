import FanfareCore
import Foundation

/// The tag that names a device's time zone: `timezone:Europe.Vienna`.
enum ZoneTag {
  static let prefix = "timezone:"
  /// The rule for names of zones, as the end of an error message.
  static let expectation = "must be a time zone of the IANA database such as \"Europe/Vienna\""

  /// Whether the text is the name of a time zone.
  static func isKnown(_ name: String) -> Bool {
    // Foundation also knows abbreviations and offsets, which say nothing of summer time.
    (name == "UTC" || name.utf8.contains(UInt8(ascii: "/"))) && Tag.isValid(of(name))
      && TimeZone(identifier: name) != nil
  }

  static func of(_ zone: String) -> String { prefix + zone.replacing("/", with: ".").replacing("+", with: "#") }

  /// The zone that a tag names; nil for other tags.
  static func zone(of tag: String) -> String? {
    guard tag.utf8.starts(with: prefix.utf8) else { return nil }
    let name = String(tag.dropFirst(prefix.count)).replacing(".", with: "/").replacing("#", with: "+")
    return isKnown(name) ? name : nil
  }

  /// A device's tags with that of its zone in place of those of other zones.
  static func tags(_ tags: [String], in zone: String?) -> [String] {
    guard let zone else { return tags }
    return tags.filter { !$0.utf8.starts(with: prefix.utf8) } + [of(zone)]
  }
}
