/// A WNS channel URI on a host of Microsoft.
///
/// Every push to it carries our bearer token. Microsoft therefore requires that the host is in the domain
/// `notify.windows.com`. Path and query are opaque and requested byte for byte: their percent escapes must not be
/// encoded again.
package struct ChannelURI: Hashable, Sendable {
  /// The host in lower case.
  package let host: String
  /// Path and query exactly as given, beginning with `/`.
  package let pathAndQuery: String

  /// Parses a URI; nil unless it is `https` on such a host, without user info or fragment, on port 443, and of the
  /// characters that a URI may have.
  package init?(_ uri: String) {
    let scheme = "https://"
    guard uri.prefix(scheme.count).lowercased() == scheme else { return nil }
    let rest = uri.dropFirst(scheme.count)
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    var authority = rest[..<end].lowercased()
    if authority.hasSuffix(":443") { authority.removeLast(4) }
    let labels = authority.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    guard Self.isPathAndQuery(rest[end...]) else { return nil }
    let isName = authority.split(separator: ".", omittingEmptySubsequences: false).allSatisfy {
      1...63 ~= $0.utf8.count
    }
    guard labels, isName, authority == "notify.windows.com" || authority.hasSuffix(".notify.windows.com") else {
      return nil
    }
    host = authority
    pathAndQuery = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
  }

  /// Whether the text has the characters of a path and a query only (RFC 3986 §3.3 and §3.4), with whole percent
  /// escapes. Others could not be requested byte for byte.
  private static func isPathAndQuery(_ text: Substring) -> Bool {
    var digitsLeft = 0
    for byte in text.utf8 {
      if digitsLeft > 0 {
        guard Hexadecimal.value(of: byte) != nil else { return false }
        digitsLeft -= 1
        continue
      }
      switch byte {
      case UInt8(ascii: "%"): digitsLeft = 2
      case _ where byte.isLetterOrDigit: break
      case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "!"),
        UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("), UInt8(ascii: ")"),
        UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "="),
        UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "/"), UInt8(ascii: "?"):
        break
      default: return false
      }
    }
    return digitsLeft == 0
  }
}
