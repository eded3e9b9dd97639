/// The content of a send: a portable message, native payloads of the services, or both; or templates.
///
/// On a platform with a native payload the message is not used.
package struct Content: Hashable, Sendable {
  /// Rendered for every platform without a native payload.
  package let message: Message?
  /// The payloads in the services' own form.
  package let native: NativePayloads
  /// Header fields for the services, such as `apns-collapse-id` and `x-wns-type`, with names in lower case. They
  /// replace the ones that are derived from the send.
  package let headers: [String: String]
  /// Nothing else is given with it.
  package let template: TemplateContent?

  package init(
    message: Message? = nil, native: NativePayloads = NativePayloads(), headers: [String: String] = [:]
  ) {
    self.message = message
    self.native = native
    self.headers = headers
    template = nil
  }

  package init(template: TemplateContent) {
    (message, native, headers) = (nil, NativePayloads(), [:])
    self.template = template
  }

  /// Whether there is nothing to send.
  package var isEmpty: Bool { coveredPlatforms.isEmpty }

  /// The platforms that have content.
  package var coveredPlatforms: PlatformSet {
    // Pattern matching, because a comparison with nil copies the whole message.
    if case .some = message { return .all }
    if case .some = template { return .all }
    return native.platforms
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
