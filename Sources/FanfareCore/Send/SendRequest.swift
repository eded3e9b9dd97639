/// Phantom type of a send's id.
package enum SendSubject {}

/// The id of one accepted send. A send posted twice under one id is one send.
package typealias SendID = Identifier<SendSubject>

/// What a caller asked to be sent: to whom, what, and until when. Immutable once accepted; everything else is derived from it.
package struct SendRequest: Hashable, Sendable {
  /// Chosen by the front end (UUID version 7), or by a backend that posts to the topic itself.
  package let id: SendID
  /// Whose users, devices and credentials it is about.
  package let hub: HubName
  /// The authenticated user who posted it; nil when a backend posted to the topic without naming one.
  package let sender: String?
  /// When it was accepted; the time to live counts from here.
  package let acceptedAt: UnixTime
  /// To whom.
  package let audience: Audience
  /// The platforms it is restricted to.
  package let platforms: PlatformSet
  /// What to show.
  package let content: Content
  /// Seconds after acceptance from which on it is expired and never delivered; nil: the worker's default.
  package let timeToLive: Int?
  /// How urgently devices are to be woken.
  package let priority: Priority
  /// Sends of one key replace one another on the device; at most 64 bytes.
  package let collapseKey: String?
  /// The W3C `traceparent` of the request it came with.
  package let traceparent: String?

  package init(
    id: SendID, hub: HubName = .default, sender: String? = nil, acceptedAt: UnixTime, audience: Audience,
    platforms: PlatformSet = .all, content: Content, timeToLive: Int? = nil, priority: Priority = .high,
    collapseKey: String? = nil, traceparent: String? = nil
  ) {
    self.id = id
    self.hub = hub
    self.sender = sender
    self.acceptedAt = acceptedAt
    self.audience = audience
    self.platforms = platforms
    self.content = content
    self.timeToLive = timeToLive
    self.priority = priority
    self.collapseKey = collapseKey
    self.traceparent = traceparent
  }
}
