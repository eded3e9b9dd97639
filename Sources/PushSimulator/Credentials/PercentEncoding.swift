import FanfareCore

/// Percent encoding of URLs and forms (RFC 3986 §2.1).
enum PercentEncoding {
  /// Undoes the encoding; an escape that is none stays as it is.
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
