/// A WNS channel URI, taken apart just far enough to know that it leads to Microsoft.
///
/// The URI is opaque and is requested byte for byte; it contains percent escapes that must not be re-encoded.
/// Microsoft's security rule: send only to hosts in the domain `notify.windows.com`, because every request carries the
/// app's bearer token.
package struct ChannelURI: Hashable, Sendable {
  /// The host, lower-case.
  package let host: String
  /// Path and query exactly as given, beginning with `/`.
  package let pathAndQuery: String

  /// Takes a URI; nil unless it is `https`, on the right host, without user info, on port 443, and of visible ASCII.
  package init?(_ uri: String) {
    let scheme = "https://"
    guard uri.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), uri.prefix(scheme.count).lowercased() == scheme,
      !uri.contains("#"),
      !uri.contains("\\")
    else { return nil }
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
    let isName = authority.split(separator: ".", omittingEmptySubsequences: false).allSatisfy {
      1...63 ~= $0.utf8.count
    }
    guard labels, isName, authority == "notify.windows.com" || authority.hasSuffix(".notify.windows.com") else {
      return nil
    }
    host = authority
    pathAndQuery = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
  }
}
