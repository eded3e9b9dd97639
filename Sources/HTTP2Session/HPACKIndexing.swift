/// How a header field is to be written into the HPACK block.
package enum HPACKIndexing: UInt8, Sendable, Hashable {
  /// Enters the dynamic table when that is worth it: for values that repeat among requests.
  case incremental = 0
  /// Never enters a table, here or at any intermediary: for values that are secret, or different in every request.
  ///
  /// On the wire this is "never indexed" (RFC 7541 section 6.2.3).
  case never = 1
  /// Kept out of the dynamic table as well. nghttp2 has a single flag for both, so on the wire this equals `never`.
  case withoutIndexing = 2
}
