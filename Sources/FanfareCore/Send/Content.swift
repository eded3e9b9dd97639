/// What a send shows: a portable message, payloads in the services' own form, or both (a native payload wins on its
/// platform).
package struct Content: Hashable, Sendable {
  /// Rendered per platform where no native payload is given.
  package let message: Message?
  /// JSON object for APNs: the whole payload with `aps`, as bytes.
  package let apns: [UInt8]?
  /// JSON object for FCM: the `message` without its target (or a legacy GCM body, which is mapped), as bytes.
  package let fcm: [UInt8]?
  /// For WNS: toast, tile or badge XML, or a raw payload.
  package let wns: String?

  package init(message: Message? = nil, apns: [UInt8]? = nil, fcm: [UInt8]? = nil, wns: String? = nil) {
    self.message = message
    self.apns = apns
    self.fcm = fcm
    self.wns = wns
  }

  /// Whether there is nothing to send at all.
  package var isEmpty: Bool { coveredPlatforms.isEmpty }

  /// The platforms on which there is something to send.
  package var coveredPlatforms: PlatformSet {
    // Not by comparison with nil, for which the whole message would be copied.
    if case .some = message { return .all }
    var set = PlatformSet()
    if case .some = apns { set.insert(PlatformSet(.apns)) }
    if case .some = fcm { set.insert(PlatformSet(.fcm)) }
    if case .some = wns { set.insert(PlatformSet(.wns)) }
    return set
  }
}
