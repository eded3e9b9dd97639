/// Where the senders put what names a push wherever it is repeated, on platforms whose protocol has no place for it.
/// (APNs has `apns-id`.)
package enum PushIdentity {
  /// The member of FCM's `data`.
  package static let dataKey = "pushId"
  /// The header field of WNS, in lower case: the correlation vector.
  package static let correlationHeader = "ms-cv"

  /// The part of a correlation vector that stays the same when a request is repeated: what stands before its first dot.
  static func base(ofVector vector: String?) -> String? {
    vector.map { String($0.prefix { $0 != "." }) }
  }
}
