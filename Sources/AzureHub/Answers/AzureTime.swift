import FanfareCore

/// The forms of times in Azure's protocol.
enum AzureTime {
  /// Reads a time that a client wrote; nil for anything else. The forms are RFC 3339, also without an offset (then it
  /// is UTC), without seconds or without a time (midnight), with an offset such as `+0100`, with quotes around the `T`
  /// as Microsoft's Python sample writes it, and `MM/dd/yyyy HH:mm:ss`.
  static func read(_ text: String) -> UnixTime? {
    let text = text.replacing("'T'", with: "T")
    guard text.contains("/") else {
      return UnixTime(text) ?? UnixTime(text + "Z") ?? UnixTime(text + "T00:00:00Z") ?? UnixTime(completed(text))
    }
    let parts = text.split(separator: " ")
    let date = parts[0].split(separator: "/", omittingEmptySubsequences: false)
    guard (2...3).contains(parts.count), date.count == 3, date[2].count == 4 else { return nil }
    func two(_ part: Substring) -> String { part.count == 1 ? "0\(part)" : String(part) }
    var time = parts[1].split(separator: ":", omittingEmptySubsequences: false).map(two)
    guard time.count == 3, let hour = Int(time[0]) else { return nil }
    if parts.count == 3 {
      guard (1...12).contains(hour), ["AM", "PM"].contains(parts[2].uppercased()) else { return nil }
      time[0] = two(Substring(String(hour % 12 + (parts[2].uppercased() == "PM" ? 12 : 0))))
    }
    return UnixTime("\(date[2])-\(two(date[0]))-\(two(date[1]))T\(time.joined(separator: ":"))Z")
  }

  /// The form of the SDKs for iOS and Android, `2026-11-21T08:00+0100`, in that of RFC 3339.
  private static func completed(_ text: String) -> String {
    var text = text
    let isSign = { (character: Character) in character == "+" || character == "-" }
    if text.suffix(5).first.map(isSign) == true { text.insert(":", at: text.index(text.endIndex, offsetBy: -2)) }
    let (minutes, rest) = (text.prefix(16), text.dropFirst(16))
    return rest.first.map(isSign) == true || rest == "Z" ? "\(minutes):00\(rest)" : text
  }

  /// A time in error texts: `11/7/2018 12:18:37 AM`.
  static func invariant(_ time: UnixTime) -> String {
    // 2026-11-07T12:18:37.000Z
    let digits = Array(time.description.utf8)
    func number(_ range: Range<Int>) -> Int { digits[range].reduce(0) { $0 * 10 + Int($1 & 0x0F) } }
    func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let hour = number(11..<13)
    return "\(number(5..<7))/\(number(8..<10))/\(number(0..<4)) \(hour % 12 == 0 ? 12 : hour % 12):"
      + "\(padded(number(14..<16))):\(padded(number(17..<19))) \(hour < 12 ? "AM" : "PM")"
  }
}
