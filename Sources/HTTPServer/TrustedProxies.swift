/// The proxies in front of the front end, from which alone `X-Forwarded-For` is believed.
package struct TrustedProxies: Hashable, Sendable {
  private let networks: [AddressRange]

  /// No proxies: `X-Forwarded-For` is ignored.
  package init() { networks = [] }

  /// Parses addresses and CIDR ranges such as `10.0.0.0/8`. Returns nil if one is neither.
  package init?(_ texts: [String]) {
    var networks: [AddressRange] = []
    for text in texts {
      guard let network = AddressRange(text) else { return nil }
      networks.append(network)
    }
    self.networks = networks
  }

  package var isEmpty: Bool { networks.isEmpty }

  func contains(_ address: ClientAddress) -> Bool { networks.contains { $0.contains(address) } }

  /// The address of the client behind a trusted proxy: the rightmost in `X-Forwarded-For` that is no trusted proxy.
  ///
  /// Each proxy appends the address from which it was called; what stands further left may be anything that the client
  /// has sent. Where an entry is no address, the proxy that wrote it is the last one known.
  func client(in forwardedFor: String?, behind proxy: ClientAddress) -> ClientAddress {
    guard let field = forwardedFor else { return proxy }
    var last = proxy
    for entry in field.split(separator: ",").reversed() {
      guard let address = ClientAddress(forwarded: entry) else { return last }
      last = address
      if !contains(address) { return address }
    }
    return last
  }
}

/// A range of addresses in CIDR notation, or a single address.
private struct AddressRange: Hashable {
  private let address: ClientAddress
  private let bits: Int

  init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let address = ClientAddress(String(first)) else { return nil }
    var bits = 128
    if parts.count == 2 {
      let width = address.isIPv4 ? 32 : 128
      guard let given = Int(parts[1]), (0...width).contains(given), parts[1].allSatisfy(\.isNumber) else { return nil }
      bits = 128 - width + given
    }
    self.bits = bits
    self.address = address.prefix(bits)
  }

  func contains(_ address: ClientAddress) -> Bool { address.prefix(bits) == self.address }
}

extension ClientAddress {
  /// Parses an entry of `X-Forwarded-For`: an address, which some proxies write with a port or in brackets.
  fileprivate init?(forwarded entry: Substring) {
    var text = entry.drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    if text.first == "[" {
      guard let end = text.firstIndex(of: "]") else { return nil }
      text = text[..<end].dropFirst()
    } else if text.count(where: { $0 == ":" }) == 1, let colon = text.firstIndex(of: ":") {
      text = text[..<colon]
    }
    self.init(String(text))
  }
}
