/// Phantom type of a send's id.
package enum SendSubject {}

/// The id of an accepted send. A send posted twice under one id is one send.
package typealias SendID = Identifier<SendSubject>

/// Phantom type of a replay's id.
package enum ReplaySubject {}

/// The id of one decision to dispatch sends again that are still in the log.
package typealias ReplayID = Identifier<ReplaySubject>

/// The urgency with which a send wakes a device.
package enum Priority: String, CaseIterable, Sendable {
  /// At once, even at the expense of the battery.
  case high
  /// At a time that suits the device.
  case normal
}

/// A caller's accepted request to send: audience, content and options. Immutable.
///
/// A worker keeps it in many places at once, so its content is shared: a copy costs one reference count.
package struct SendRequest: Hashable, Sendable {
  /// The members of a send.
  package struct Values: Hashable, Sendable {
    package var id: SendID
    package var hub: HubName
    package var sender: String?
    package var acceptedAt: UnixTime
    package var audience: Audience
    package var platforms: PlatformSet
    package var content: Content
    package var timeToLive: Int?
    package var priority: Priority
    package var collapseKey: String?
    package var traceparent: String?
    package var tracestate: String?
    package var replay: ReplayID?
    package var maximumPerSecond: Int?
    package var unknownMembers: [UInt8]
  }

  private final class Storage: Sendable {
    let values: Values
    let isBroadcast: Bool
    let coveredPlatforms: PlatformSet

    init(_ values: Values) {
      self.values = values
      isBroadcast = values.audience.isBroadcast
      coveredPlatforms = values.platforms.intersection(values.content.coveredPlatforms)
    }
  }

  private let storage: Storage

  /// Chosen by the front end (UUID version 7), or by a backend that produces to the topic itself.
  package var id: SendID { storage.values.id }
  /// The hub whose users, devices and credentials it uses.
  package var hub: HubName { storage.values.hub }
  /// The authenticated user who posted it; nil if a backend produced to the topic without naming
  /// one.
  package var sender: String? { storage.values.sender }
  /// When it was accepted. The time to live counts from here.
  package var acceptedAt: UnixTime { storage.values.acceptedAt }
  package var audience: Audience { storage.values.audience }
  /// Whether the audience may be of any size.
  /// Cheaper than `audience.isBroadcast`, which copies the audience.
  package var isBroadcast: Bool { storage.isBroadcast }
  /// The platforms that it is restricted to.
  package var platforms: PlatformSet { storage.values.platforms }
  package var content: Content { storage.values.content }
  /// The platforms that it is restricted to and has content for.
  package var coveredPlatforms: PlatformSet { storage.coveredPlatforms }
  /// Seconds after acceptance until it expires and is never delivered; nil: the worker's default.
  package var timeToLive: Int? { storage.values.timeToLive }
  package var priority: Priority { storage.values.priority }
  /// Sends with the same key replace one another on the device; at most 64 bytes.
  package var collapseKey: String? { storage.values.collapseKey }
  /// The W3C `traceparent` of the caller's request.
  package var traceparent: String? { storage.values.traceparent }
  /// The W3C `tracestate` that came with it.
  package var tracestate: String? { storage.values.tracestate }
  /// The replay that produced it to the topic again; nil for the original.
  package var replay: ReplayID? { storage.values.replay }
  /// The most pushes per second of all workers together; nil: unlimited. Only broadcasts use it.
  package var maximumPerSecond: Int? { storage.values.maximumPerSecond }
  /// Unknown members of its record's `data` as JSON, each with a comma before it.
  /// They are written again with the send. Nearly always empty.
  package var unknownMembers: [UInt8] { storage.values.unknownMembers }

  /// Identifies the send among all sends to be dispatched: its id combined with the replay.
  ///
  /// A replayed send is the same send with the same push ids and the same account, but not a duplicate of the original
  /// record.
  package var identity: SendID {
    guard let replay else { return id }
    return SendID(high: id.high ^ replay.high, low: id.low ^ replay.low)
  }

  package init(
    id: SendID, hub: HubName = .default, sender: String? = nil, acceptedAt: UnixTime, audience: Audience,
    platforms: PlatformSet = .all, content: Content, timeToLive: Int? = nil, priority: Priority = .high,
    collapseKey: String? = nil, traceparent: String? = nil, tracestate: String? = nil, replay: ReplayID? = nil,
    maximumPerSecond: Int? = nil, unknownMembers: [UInt8] = []
  ) {
    storage = Storage(
      Values(
        id: id, hub: hub, sender: sender, acceptedAt: acceptedAt, audience: audience, platforms: platforms,
        content: content, timeToLive: timeToLive, priority: priority, collapseKey: collapseKey,
        traceparent: traceparent, tracestate: tracestate, replay: replay, maximumPerSecond: maximumPerSecond,
        unknownMembers: unknownMembers))
  }

  private init(_ values: Values) {
    storage = Storage(values)
  }

  /// A copy of the send with some members changed.
  package func with(_ change: (inout Values) -> Void) -> SendRequest {
    var values = storage.values
    change(&values)
    return SendRequest(values)
  }

  /// The send as a replay produces it, restricted to those of its platforms.
  package func replayed(by replay: ReplayID, on platforms: PlatformSet) -> SendRequest {
    with { values in
      values.replay = replay
      values.platforms.formIntersection(platforms)
    }
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.storage === right.storage || left.storage.values == right.storage.values
  }

  package func hash(into hasher: inout Hasher) {
    // Equal sends have equal ids.
    hasher.combine(id)
  }
}
