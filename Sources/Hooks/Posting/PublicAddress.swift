/// Which addresses of receivers are public, by the registries of special addresses (RFC 6890 and its successors).
///
/// A hook's URL is configuration, but its name is resolved by somebody else's name server: it must not lead to a
/// service of this machine, of the private network or of the cloud's metadata.
enum PublicAddress {
  /// Whether the text is an address that is reachable in the internet.
  static func isPublic(_ text: String) -> Bool {
    guard let bytes = IPAddress.bytes(of: text) else { return false }
    return bytes.count == 4 ? isPublicIPv4(bytes) : isPublicIPv6(bytes)
  }

  private static func isPublicIPv4(_ address: [UInt8]) -> Bool {
    !special.contains { network in matches(address, network.prefix, bits: network.bits) }
  }

  private static func isPublicIPv6(_ address: [UInt8]) -> Bool {
    // Only 2000::/3 is global unicast. Mapped (::ffff:0:0/96) and translated (64:ff9b::/96) IPv4 addresses lie outside.
    guard matches(address, [0x20], bits: 3) else { return false }
    // Protocol assignments with Teredo, documentation, and 6to4, whose last two lead to IPv4 addresses.
    return !matches(address, [0x20, 0x01, 0x00], bits: 23) && !matches(address, [0x20, 0x01, 0x0D, 0xB8], bits: 32)
      && !matches(address, [0x20, 0x02], bits: 16) && !matches(address, [0x3F, 0xFF, 0x00], bits: 20)
  }

  private static let special: [(prefix: [UInt8], bits: Int)] = [
    ([0], 8), ([10], 8), ([100, 64], 10), ([127], 8), ([169, 254], 16), ([172, 16], 12), ([192, 0, 0], 24),
    ([192, 0, 2], 24), ([192, 88, 99], 24), ([192, 168], 16), ([198, 18], 15), ([198, 51, 100], 24),
    ([203, 0, 113], 24), ([224], 4), ([240], 4),
  ]

  private static func matches(_ address: [UInt8], _ prefix: [UInt8], bits: Int) -> Bool {
    for (index, byte) in prefix.enumerated() {
      let width = min(8, bits - index * 8)
      guard width > 0 else { break }
      guard (address[index] ^ byte) >> (8 - UInt8(width)) == 0 else { return false }
    }
    return true
  }
}
