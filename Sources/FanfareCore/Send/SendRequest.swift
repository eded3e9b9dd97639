/// Phantom type of a send's id.
package enum SendSubject {}

/// The id of one accepted send. A send posted twice under one id is one send.
package typealias SendID = Identifier<SendSubject>

/// Phantom type of a replay's id.
package enum ReplaySubject {}

/// The id of one decision to dispatch sends again that are in the log already.
package typealias ReplayID = Identifier<ReplaySubject>

/// What a caller asked to be sent: to whom, what, and until when. Immutable once accepted; everything else is derived
/// from it.
///
/// A worker keeps it in many places at once, so what it holds is shared: a copy costs one reference count.
package struct SendRequest: Hashable, Sendable {
  private let fields: Fields

  /// Chosen by the front end (UUID version 7), or by a backend that posts to the topic itself.
  package var id: SendID { fields.id }
  /// Whose users, devices and credentials it is about.
  package var hub: HubName { fields.hub }
  /// The authenticated user who posted it; nil when a backend posted to the topic without naming one.
  package var sender: String? { fields.sender }
  /// When it was accepted; the time to live counts from here.
  package var acceptedAt: UnixTime { fields.acceptedAt }
  /// To whom.
  package var audience: Audience { fields.audience }
  /// Whether the audience may be of any size. Known without a copy of the audience.
  package var isBroadcast: Bool { fields.isBroadcast }
  /// The platforms it is restricted to.
  package var platforms: PlatformSet { fields.platforms }
  /// What to show.
  package var content: Content { fields.content }
  /// The platforms it is meant for and has something to show on.
  package var coveredPlatforms: PlatformSet { fields.coveredPlatforms }
  /// Seconds after acceptance from which on it is expired and never delivered; nil: the worker's default.
  package var timeToLive: Int? { fields.timeToLive }
  /// How urgently devices are to be woken.
  package var priority: Priority { fields.priority }
  /// Sends of one key replace one another on the device; at most 64 bytes.
  package var collapseKey: String? { fields.collapseKey }
  /// The W3C `traceparent` of the request it came with.
  package var traceparent: String? { fields.traceparent }
  /// The replay that it was put on the topic again by; nil for a send as it was accepted.
  package var replay: ReplayID? { fields.replay }
  /// The most pushes per second that all workers together may make of it; nil: as many as they can. Of no effect unless
  /// `isBroadcast`.
  package var maximumPerSecond: Int? { fields.maximumPerSecond }
  /// The members of its record's `data` that this version does not know, in JSON, each with a comma before it: written
  /// again wherever the send is. Nearly always empty.
  package var unknownMembers: [UInt8] { fields.unknownMembers }

  /// What tells a send from every other that is to be dispatched: its id, and the replay. A replayed send is the same
  /// send, with the same ids of its pushes and the same account, but not the duplicate of a record that was dispatched.
  package var identity: SendID {
    guard let replay else { return id }
    return SendID(high: id.high ^ replay.high, low: id.low ^ replay.low)
  }

  package init(
    id: SendID, hub: HubName = .default, sender: String? = nil, acceptedAt: UnixTime, audience: Audience,
    platforms: PlatformSet = .all, content: Content, timeToLive: Int? = nil, priority: Priority = .high,
    collapseKey: String? = nil, traceparent: String? = nil, replay: ReplayID? = nil, maximumPerSecond: Int? = nil,
    unknownMembers: [UInt8] = []
  ) {
    fields = Fields(
      id: id, hub: hub, sender: sender, acceptedAt: acceptedAt, audience: audience, platforms: platforms,
      content: content,
      timeToLive: timeToLive, priority: priority, collapseKey: collapseKey, traceparent: traceparent, replay: replay,
      maximumPerSecond: maximumPerSecond, unknownMembers: unknownMembers)
  }

  /// The send as it is put on the topic again, for those of its platforms.
  package func replayed(by replay: ReplayID, on platforms: PlatformSet) -> SendRequest {
    SendRequest(
      id: id, hub: hub, sender: sender, acceptedAt: acceptedAt, audience: audience,
      platforms: self.platforms.intersection(platforms), content: content, timeToLive: timeToLive, priority: priority,
      collapseKey: collapseKey, traceparent: traceparent, replay: replay, maximumPerSecond: maximumPerSecond,
      unknownMembers: unknownMembers)
  }

  private final class Fields: Sendable {
    let id: SendID
    let hub: HubName
    let sender: String?
    let acceptedAt: UnixTime
    let audience: Audience
    let isBroadcast: Bool
    let platforms: PlatformSet
    let content: Content
    let coveredPlatforms: PlatformSet
    let timeToLive: Int?
    let priority: Priority
    let collapseKey: String?
    let traceparent: String?
    let replay: ReplayID?
    let maximumPerSecond: Int?
    let unknownMembers: [UInt8]

    init(
      id: SendID, hub: HubName, sender: String?, acceptedAt: UnixTime, audience: Audience, platforms: PlatformSet,
      content: Content, timeToLive: Int?, priority: Priority, collapseKey: String?, traceparent: String?,
      replay: ReplayID?,
      maximumPerSecond: Int?, unknownMembers: [UInt8]
    ) {
      self.id = id
      self.hub = hub
      self.sender = sender
      self.acceptedAt = acceptedAt
      self.audience = audience
      isBroadcast = audience.isBroadcast
      self.platforms = platforms
      self.content = content
      coveredPlatforms = platforms.intersection(content.coveredPlatforms)
      self.timeToLive = timeToLive
      self.priority = priority
      self.collapseKey = collapseKey
      self.traceparent = traceparent
      self.replay = replay
      self.maximumPerSecond = maximumPerSecond
      self.unknownMembers = unknownMembers
    }
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.fields === right.fields
      || left.id == right.id && left.hub == right.hub && left.sender == right.sender
        && left.acceptedAt == right.acceptedAt
        && left.audience == right.audience && left.platforms == right.platforms && left.content == right.content
        && left.timeToLive == right.timeToLive && left.priority == right.priority
        && left.collapseKey == right.collapseKey
        && left.traceparent == right.traceparent && left.replay == right.replay
        && left.maximumPerSecond == right.maximumPerSecond && left.unknownMembers == right.unknownMembers
  }

  package func hash(into hasher: inout Hasher) {
    // Equal sends have equal ids.
    hasher.combine(id)
  }
}
