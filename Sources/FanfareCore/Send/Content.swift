/// The content of a send: a portable message, native payloads of the services, or both; or templates.
///
/// On a platform with a native payload the message is not used.
package struct Content: Hashable, Sendable {
  /// Rendered for every platform without a native payload.
  package let message: Message?
  /// A JSON object for APNs: the whole payload including `aps`.
  package let apns: [UInt8]?
  /// A JSON object for FCM: the `message` without its target, or a legacy GCM body, which is
  /// converted.
  package let fcm: [UInt8]?
  /// For WNS: toast, tile or badge XML, or a raw payload.
  package let wns: String?
  /// Header fields for the services, such as `apns-collapse-id` and `x-wns-type`, with names in lower case. They
  /// replace the ones that are derived from the send.
  package let headers: [String: String]
  /// Nothing else is given with it.
  package let template: TemplateContent?

  package init(
    message: Message? = nil, apns: [UInt8]? = nil, fcm: [UInt8]? = nil, wns: String? = nil,
    headers: [String: String] = [:]
  ) {
    self.message = message
    self.apns = apns
    self.fcm = fcm
    self.wns = wns
    self.headers = headers
    template = nil
  }

  package init(template: TemplateContent) {
    (message, apns, fcm, wns, headers) = (nil, nil, nil, nil, [:])
    self.template = template
  }

  /// Whether there is nothing to send.
  package var isEmpty: Bool { coveredPlatforms.isEmpty }

  /// The platforms that have content.
  package var coveredPlatforms: PlatformSet {
    // Pattern matching, because a comparison with nil copies the whole message.
    if case .some = message { return .all }
    if case .some = template { return .all }
    var set = PlatformSet()
    if case .some = apns { set.insert(PlatformSet(.apns)) }
    if case .some = fcm { set.insert(PlatformSet(.fcm)) }
    if case .some = wns { set.insert(PlatformSet(.wns)) }
    return set
  }
}

/// A portable message, which is rendered for each platform.
package struct Message: Hashable, Sendable {
  package let title: String?
  package let body: String?
  /// Values for the app.
  package let data: [String: String]
  /// The number on the app's icon; 0 clears it.
  package let badge: Int?
  /// A sound's name, or `default`.
  package let sound: String?

  package init(
    title: String? = nil, body: String? = nil, data: [String: String] = [:], badge: Int? = nil, sound: String? = nil
  ) {
    self.title = title
    self.body = body
    self.data = data
    self.badge = badge
    self.sound = sound
  }

  package var isEmpty: Bool { title == nil && body == nil && data.isEmpty && badge == nil && sound == nil }
}
