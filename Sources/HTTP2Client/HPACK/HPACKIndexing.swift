/// How a header field is to be written into the HPACK block.
package enum HPACKIndexing: UInt8, Sendable, Hashable {
  /// Enters the dynamic table: for values that repeat among requests.
  case incremental = 0
  /// Never enters a table, here or at any intermediary: for values that are secret (RFC 7541 section 6.2.3).
  case never = 1
  /// Only the name enters the dynamic table, with the first value: for values that are different in every request (RFC
  /// 7541 section 6.2.2). What Apple asks for `apns-id`, `apns-expiration` and `apns-collapse-id`.
  case withoutIndexing = 2
}
