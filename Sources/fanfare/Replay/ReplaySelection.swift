import FanfareCore

/// Decides which sends of the log are dispatched again, and on which platforms. A pure value: it is told first what waits and what has ended,
/// then asked about each send.
struct ReplaySelection {
  /// When they were accepted: from, and before.
  let accepted: Range<UnixTime>
  /// Only what has something for this platform, and only there; nil for all.
  let platform: Platform?
  /// Only what goes to this user; nil for all.
  let user: String?
  /// Only sends of this hub; nil for all.
  let hub: HubName?
  /// Only platforms where the last status has a device without success, and sends without a status.
  let failedOnly: Bool

  private struct Ending {
    /// What had failed before the present attempt.
    var before: PlatformSet = []
    /// What the parts of the present attempt speak of, and what of that has failed.
    var met: PlatformSet = []
    var own: PlatformSet = []
    var attempt: AttemptID?

    var failed: PlatformSet { before.subtracting(met).union(own) }

    mutating func note(_ outcome: DeviceResult.Outcome, on platform: Platform) {
      met.insert(PlatformSet(platform))
      switch outcome {
      case .failed, .unconfirmed, .expired: own.insert(PlatformSet(platform))
      case .delivered, .rejected, .deviceGone: break
      }
    }
  }

  private var waiting: Set<SendKey> = []
  private var endings: [SendKey: Ending] = [:]
  private var taken: Set<SendKey> = []

  init(
    accepted: Range<UnixTime>, platform: Platform? = nil, user: String? = nil, hub: HubName? = nil, failedOnly: Bool = false
  ) {
    self.accepted = accepted
    self.platform = platform
    self.user = user
    self.hub = hub
    self.failedOnly = failedOnly
  }

  /// A record of the send has still to be worked on.
  mutating func noteWaiting(_ send: SendKey) { waiting.insert(send) }

  /// A part of a send has ended. Records of one send come in their order in the log; what a later one says of a platform replaces what was said.
  mutating func note(_ status: StatusRecord) {
    guard failedOnly, accepted.contains(status.acceptedAt) else { return }
    let key = SendKey(hub: status.hub, id: status.send)
    var ending = endings[key] ?? Ending()
    // The parts of one attempt say different things of one platform.
    if status.parts == 1 || status.attempt != ending.attempt {
      ending = Ending(before: ending.failed, attempt: status.attempt)
    }
    for device in status.devices { ending.note(device.outcome, on: device.platform) }
    // A page of a broadcast names only the devices that have got nothing.
    for (kind, _) in status.counts.entries { ending.note(kind.outcome, on: kind.platform) }
    // Nothing of it was sent.
    if status.state == .expired { ending.own = .all }
    endings[key] = ending
  }

  /// The send as it is to be put on the topic again; nil when it is not. A send is given once, however often it is in the log.
  mutating func replay(_ send: SendRequest, by id: ReplayID) -> SendRequest? {
    guard send.replay == nil, hub == nil || send.hub == hub, accepted.contains(send.acceptedAt) else { return nil }
    if let user, send.audience.tag.flatMap(Tag.user(of:)) != user { return nil }
    let key = SendKey(hub: send.hub, id: send.id)
    // It will be dispatched anyway.
    guard !waiting.contains(key) else { return nil }
    var platforms = platform.map { PlatformSet($0) } ?? .all
    if failedOnly, let ending = endings[key] { platforms.formIntersection(ending.failed) }
    guard !send.coveredPlatforms.isDisjoint(with: platforms), taken.insert(key).inserted else { return nil }
    return send.replayed(by: id, on: platforms)
  }
}
