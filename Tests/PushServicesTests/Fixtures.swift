import FanfareCore
import Foundation
import Testing

/// What tests of this target are made of.
enum Fixtures {
  static let now = UnixTime(milliseconds: 1_795_248_000_000)
  static let sendID = SendID(high: 0x0123_4567_89AB_7DEF, low: 0x8123_4567_89AB_CDEF)
  static let pushID = PushID(high: 0x1111_2222_3333_8444, low: 0x8555_6666_7777_8888)

  /// Texts that have broken renderers before.
  static let hostileTexts = [
    #"quotes " and ' and \ and / and \u0041"#, "<b>&amp;</b> ]]> <!-- -->", "line\nbreak\r\nand\ttab",
    "emoji 👩‍👩‍👧‍👦🏴‍☠️ and e\u{301}",
    "controls \u{0}\u{1}\u{8}\u{B}\u{C}\u{1F}\u{7F}\u{80}\u{9F}",
    "nonchars " + [0xFFFE, 0xFFFF, 0xFDD0, 0x1FFFE].compactMap(Unicode.Scalar.init).map { String($0) }.joined()
      + " end",
    "separators \u{2028}\u{2029}\u{FEFF}\u{202E}", "", " ", "%@ {} ${x} </text>", "\u{FFFD}\u{10FFFD}",
  ]

  static func send(
    _ content: Content, priority: Priority = .high, collapseKey: String? = nil
  ) -> SendRequest {
    SendRequest(
      id: sendID, acceptedAt: now, audience: .user("alice"), content: content, timeToLive: 3600, priority: priority,
      collapseKey: collapseKey)
  }

  static func send(_ message: Message, priority: Priority = .high, collapseKey: String? = nil) -> SendRequest {
    send(Content(message: message), priority: priority, collapseKey: collapseKey)
  }

  /// Parses with Foundation, which shares no code with what wrote it.
  static func object(_ json: [UInt8]) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
  }
}

/// A member, or a member of a member, of parsed JSON.
func member(_ object: Any?, _ path: String...) -> Any? {
  path.reduce(object) { ($0 as? [String: Any])?[$1] }
}
