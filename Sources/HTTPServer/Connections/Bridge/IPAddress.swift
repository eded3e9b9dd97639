import Glibc

/// Reads IP addresses with the C library (`inet_pton(3)`).
enum IPAddress {
  /// Returns the 4 or 16 bytes of an IPv4 or IPv6 address in network order; nil for any other text.
  static func bytes(of text: String) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 16)
    if unsafe inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes.prefix(4)) }
    return unsafe inet_pton(AF_INET6, text, &bytes) == 1 ? bytes : nil
  }
}
