import FanfareCore

/// The fields of an `application/x-www-form-urlencoded` body (WHATWG URL §5.1).
struct FormBody {
  private let fields: [String: String]

  /// If a field occurs twice, the first one counts.
  init(_ body: some Collection<UInt8>) {
    var fields: [String: String] = [:]
    for pair in body.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      let name = PercentEncoding.decode(parts[0], plusIsSpace: true)
      let value = parts.count > 1 ? PercentEncoding.decode(parts[1], plusIsSpace: true) : ""
      if fields[name] == nil { fields[name] = value }
    }
    self.fields = fields
  }

  subscript(name: String) -> String? { fields[name] }
}

/// Percent encoding of URLs and forms (RFC 3986 §2.1).
enum PercentEncoding {
  /// Decodes; an invalid escape stays unchanged.
  static func decode(_ text: some Collection<UInt8>, plusIsSpace: Bool = false) -> String {
    let bytes = Array(text)
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = Hexadecimal.value(of: bytes[index + 1]),
        let low = Hexadecimal.value(of: bytes[index + 2])
      {
        output.append(high << 4 | low)
        index += 3
      } else {
        output.append(plusIsSpace && bytes[index] == UInt8(ascii: "+") ? UInt8(ascii: " ") : bytes[index])
        index += 1
      }
    }
    return String(decoding: output, as: UTF8.self)
  }
}
