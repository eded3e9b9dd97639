import FanfareCore

/// One record of the sends topic on its way through the worker.
struct WorkItem: Sendable {
  /// How far it is.
  enum Phase: Sendable {
    /// The slot holds no item.
    case vacant
    /// An earlier send of the same key is not through its first attempts.
    case queued
    /// Its devices are to be looked up, or are being looked up.
    case resolving
    /// Its pages are gone through one after another, each as an item of its own.
    case walking
    /// Its devices are known and are being pushed to.
    case dispatching
    /// Its records are on their way to Kafka.
    case settling
  }

  /// Counts the items that were in this slot.
  var generation: UInt32 = 0
  var phase = Phase.vacant
  /// nil when the record could not be used, and once the item has its end.
  var send: SendRequest?
  /// How `RecentSends` knows the send; nil when the record could not be used.
  var key: RecentSends.Key?
  /// The hub's number.
  var hub = 0
  var origin = Origin(slot: 0, epoch: 0, sequence: 0)
  /// Further records of the same send, which settle with it.
  var followers: [Origin] = []
  /// What the record weighs towards the limit of bytes held.
  var bytes = 0
  /// The hash of the record's key: items of one lane start one after another.
  var lane: UInt64 = 0
  /// Whether the item is its lane's first.
  var leadsLane = false
  /// The slot of the item behind it in the lane; -1: none.
  var nextInLane: Int32 = -1
  var expiresAt = UnixTime(milliseconds: 0)
  var devices: [DeviceProgress] = []
  /// Devices without a result.
  var openDevices = 0
  /// Devices whose first attempt has no outcome.
  var openFirstAttempts = 0
  /// Whether anything was handed to a sender: from then on giving the item up repeats pushes.
  var hasStarted = false
  /// One per platform that it was rendered for.
  var renderings: [Rendering] = []
  /// Records about it that Kafka has not acknowledged.
  var unacknowledged = 0
  /// Given up while behind others in its lane: freed when its turn comes.
  var isAbandoned = false
  /// Which part of its send it is, where the record was put off before; nil for a send that comes for the first time.
  var resumed: Resumed?
  /// What it is apart from a send, or what is left of one.
  var role = Role.send
  /// Whether its pushes go into the broadcasts' lane.
  var isBulk = false

  /// What an item stands for. What a broadcast's carry is kept apart, so that the many items of single sends are small.
  indirect enum Role: Sendable {
    /// A record of the sends topic, and its devices.
    case send
    /// A record of the sends topic whose audience is divided into pages: its records are segments.
    case plan(BroadcastID)
    /// A record of the segments topic.
    case segment(SegmentWalk)
    /// One page of a segment.
    case page(OpenPage)
    /// A record of the sends topic that holds what a page has put off, and has room to be pushed.
    case returned(Returned)
  }

  /// What a record that a page has put off takes of the room for such.
  struct Returned: Sendable {
    /// How many devices it wants to push to now, no more than a second's where its broadcast has a rate.
    let weight: Int
    /// What services those devices are of: of each it takes so much, until the whole record is done.
    let platforms: PlatformSet
    /// Its broadcast, where that has a rate: of such only one record has room at a time.
    let rated: BroadcastID?
  }

  /// The segment's walk; nil of any other item.
  var walk: SegmentWalk? {
    get { if case .segment(let walk) = role { walk } else { nil } }
    set { if let newValue { role = .segment(newValue) } }
  }

  /// The page; nil of any other item.
  var page: OpenPage? {
    get { if case .page(let page) = role { page } else { nil } }
    set { if let newValue { role = .page(newValue) } }
  }

  /// The broadcast whose segment or page it is; nil of any other item.
  var broadcast: BroadcastID? {
    switch role {
    case .segment(let walk): walk.broadcast
    case .page(let page): page.broadcast
    case .send, .plan, .returned: nil
    }
  }

  /// Whether it is a page.
  var isPage: Bool { if case .page = role { true } else { false } }

  /// Whether it has room that is for what pages have put off.
  var isReturned: Bool { if case .returned = role { true } else { false } }

  /// What a record that was put off says of itself.
  struct Resumed: Sendable {
    let part: Int
    let parts: Int
    let attempt: AttemptID?
    let deferrals: Int
    /// Whether it came back before its time.
    let cameEarly: Bool
    /// How further devices of the part have ended.
    let counts: OutcomeCounts
  }

  /// What the send shows on one platform.
  struct Rendering: Sendable {
    let sender: Int
    let rendered: RenderedPush
  }
}
