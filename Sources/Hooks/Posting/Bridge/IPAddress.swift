import Glibc

/// Reads and looks up IP addresses with the C library.
enum IPAddress {
  /// The name has no address, or no name server answers.
  struct Unknown: Error {}

  /// Returns the 4 or 16 bytes of an IPv4 or IPv6 address in network order; nil for any other text.
  static func bytes(of text: String) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 16)
    if unsafe inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes.prefix(4)) }
    return unsafe inet_pton(AF_INET6, text, &bytes) == 1 ? bytes : nil
  }

  /// The addresses of a host name or address as text, in the order in which the system would try them.
  /// Blocks for as long as the system's resolver waits.
  static func addresses(of host: String) throws(Unknown) -> [String] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(host, nil, &hints, &first) == 0 else { throw Unknown() }
    defer { unsafe freeaddrinfo(first) }
    var addresses: [String] = []
    var next = unsafe first
    while let info = unsafe next {
      var text = [UInt8](repeating: 0, count: Int(NI_MAXHOST))
      let length = socklen_t(text.count)
      let status = unsafe text.withUnsafeMutableBytes { buffer in
        unsafe getnameinfo(
          info.pointee.ai_addr, info.pointee.ai_addrlen, buffer.baseAddress?.assumingMemoryBound(to: CChar.self),
          length, nil, 0, NI_NUMERICHOST)
      }
      if status == 0 { addresses.append(String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)) }
      unsafe next = info.pointee.ai_next
    }
    return addresses
  }
}
