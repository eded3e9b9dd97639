import FanfareCore

/// The value of a `Retry-After` header field (RFC 9110 §10.2.3).
enum RetryAfter {
  /// The longest wait that a service is believed to mean; beyond it every send has expired, or the value is an error.
  static let maximum: Duration = .seconds(24 * 3600)

  /// Seconds, or the time until an HTTP date, between nothing and `maximum`; nil when the value is neither. Of the
  /// three forms of an HTTP date only the one that may still be generated is read (`Sun, 06 Nov 1994 08:49:37 GMT`).
  static func duration(_ value: String, now: UnixTime) -> Duration? {
    if !value.isEmpty, value.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) {
      return Int64(value).map { min(.seconds($0), maximum) } ?? maximum
    }
    guard let date = date(value) else { return nil }
    return min(max(date - now, .zero), maximum)
  }

  private static func date(_ value: String) -> UnixTime? {
    let parts = value.split(separator: " ")
    guard parts.count == 6, parts[0].hasSuffix(","), parts[5] == "GMT", parts[1].utf8.count == 2 else { return nil }
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    guard let month = months.firstIndex(of: String(parts[2])) else { return nil }
    return UnixTime("\(parts[3])-\(month < 9 ? "0" : "")\(month + 1)-\(parts[1])T\(parts[4])Z")
  }
}
