/// Makes stored text safe to print.
///
/// The writer of a record could otherwise send commands to the terminal of the operator who looks at it, hide text, or
/// forge lines.
package enum Printable {
  /// The text as one line: control characters, and characters that are invisible or change the direction of text,
  /// become `\u{…}`.
  package static func line(_ text: String) -> String { escape(text, keepsLines: false) { "\\u{\($0)}" } }

  /// The text with its line ends and tabs; other such characters become `\u{…}`.
  package static func lines(_ text: String) -> String { escape(text, keepsLines: true) { "\\u{\($0)}" } }

  /// JSON text with the same meaning, in which such characters are JSON's escapes.
  package static func json(_ text: String) -> String {
    escape(text, keepsLines: true) { digits in
      // JSON writes characters above U+FFFF as two escapes.
      let value = UInt32(digits, radix: 16).flatMap(Unicode.Scalar.init) ?? "\u{FFFD}"
      return String(value).utf16.map { unit in
        let digits = String(unit, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }.joined()
    }
  }

  private static func escape(_ text: String, keepsLines: Bool, as form: (_ digits: String) -> String) -> String {
    guard text.unicodeScalars.contains(where: { isHarmful($0, keepsLines: keepsLines) }) else { return text }
    var safe = ""
    for scalar in text.unicodeScalars {
      if isHarmful(scalar, keepsLines: keepsLines) {
        safe += form(String(scalar.value, radix: 16))
      } else {
        safe.unicodeScalars.append(scalar)
      }
    }
    return safe
  }

  private static func isHarmful(_ scalar: Unicode.Scalar, keepsLines: Bool) -> Bool {
    // Most text is printable ASCII.
    if (" "..."~").contains(scalar) { return false }
    if keepsLines, scalar == "\n" || scalar == "\t" { return false }
    // They join letters and emoji and change nothing else.
    if scalar == "\u{200C}" || scalar == "\u{200D}" { return false }
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: return true
    default: return false
    }
  }
}
