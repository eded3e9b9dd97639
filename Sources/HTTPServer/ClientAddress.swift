package import NIOCore

/// The IP address of a caller: the peer of the connection, or the client that a trusted proxy names.
package struct ClientAddress: Hashable, Sendable, CustomStringConvertible {
  /// The address of a peer without an IP address, such as a Unix domain socket.
  package static let unknown = ClientAddress(high: 0, low: 0)

  /// The 128 bits of an IPv6 address; an IPv4 address is mapped (`::ffff:192.0.2.1`, RFC 4291 §2.5.5.2).
  private let high: UInt64
  private let low: UInt64

  private init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// Parses an IPv4 address, or an IPv6 address without brackets. Returns nil for anything else, such as a host name.
  package init?(_ text: String) {
    guard let bytes = IPAddress.bytes(of: text) else { return nil }
    func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    if bytes.count == 4 {
      self.init(high: 0, low: 0xFFFF_0000_0000 | number(bytes[...]))
    } else {
      self.init(high: number(bytes[..<8]), low: number(bytes[8...]))
    }
  }

  /// The address of a connection's peer. It is converted by way of text: do it once for each connection.
  package init(_ address: SocketAddress?) {
    self = address?.ipAddress.flatMap { ClientAddress($0) } ?? .unknown
  }

  /// The network that one customer of a provider usually has alone: the address itself, of IPv6 its first 64 bits.
  package var network: ClientAddress { isIPv4 ? self : ClientAddress(high: high, low: 0) }

  package var description: String {
    if isIPv4 {
      return stride(from: 24, through: 0, by: -8).map { "\(UInt8(truncatingIfNeeded: low >> $0))" }
        .joined(separator: ".")
    }
    let groups = [high, low].flatMap { half in
      stride(from: 48, through: 0, by: -16).map { UInt16(truncatingIfNeeded: half >> $0) }
    }
    // The longest run of two or more zero groups is written as `::` (RFC 5952 §4.2).
    var longest = 0..<0
    var start = 0
    for index in 0...groups.count where index == groups.count || groups[index] != 0 {
      if index - start > max(1, longest.count) { longest = start..<index }
      start = index + 1
    }
    func text(_ part: ArraySlice<UInt16>) -> String {
      part.map { String($0, radix: 16) }.joined(separator: ":")
    }
    return longest.isEmpty
      ? text(groups[...]) : "\(text(groups[..<longest.lowerBound]))::\(text(groups[longest.upperBound...]))"
  }

  /// The address with all but the first `count` of its 128 bits cleared.
  func prefix(_ count: Int) -> ClientAddress {
    // A shift by all bits gives 0.
    ClientAddress(
      high: high & ~(.max >> UInt64(min(64, count))), low: low & ~(.max >> UInt64(max(0, count - 64))))
  }

  /// Whether the address is of the machine itself: in 127.0.0.0/8, or `::1`.
  var isLoopback: Bool { isIPv4 ? low >> 24 == 0xFFFF_7F : high == 0 && low == 1 }

  /// Whether the address is an IPv4 address, whose 32 bits are the last of the 128.
  var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }
}
