import FanfareCore

/// Decides which sends of the log are dispatched again, and on which platforms. A pure value: it is told first what
/// waits and what has ended, then asked about each send.
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

  /// What the status records of one attempt at a send say.
  private struct Ending {
    let attempt: AttemptID?
    var settledAt: UnixTime
    /// What they speak of, and what of that has failed.
    var met: PlatformSet = []
    var failed: PlatformSet = []

    mutating func note(_ outcome: DeviceResult.Outcome, on platform: Platform) {
      met.insert(PlatformSet(platform))
      switch outcome {
      case .failed, .unconfirmed, .expired: failed.insert(PlatformSet(platform))
      case .delivered, .rejected, .deviceGone: break
      }
    }

    mutating func add(_ part: Ending) {
      settledAt = max(settledAt, part.settledAt)
      met.formUnion(part.met)
      failed.formUnion(part.failed)
    }
  }

  private var waiting: Set<SendKey> = []
  private var endings: [SendKey: [Ending]] = [:]
  private var cancelledSends: Set<SendKey> = []
  private var taken: Set<SendKey> = []
  /// How many sends have been asked about that would be given, had nobody cancelled them.
  private(set) var cancelled = 0

  init(
    accepted: Range<UnixTime>, platform: Platform? = nil, user: String? = nil, hub: HubName? = nil,
    failedOnly: Bool = false
  ) {
    self.accepted = accepted
    self.platform = platform
    self.user = user
    self.hub = hub
    self.failedOnly = failedOnly
  }

  /// A record of the send has still to be worked on.
  mutating func noteWaiting(_ send: SendKey) { waiting.insert(send) }

  /// A part of a send has ended. Records may come in any order: those of one send lie in several partitions. What a
  /// later attempt says of a platform replaces what an earlier one has said.
  mutating func note(_ status: StatusRecord) {
    guard accepted.contains(status.acceptedAt) else { return }
    let key = SendKey(hub: status.hub, id: status.send)
    // Whatever else was said of it: whoever cancelled it does not want it to arrive.
    if status.state == .cancelled { cancelledSends.insert(key) }
    guard failedOnly else { return }
    var ending = Ending(attempt: status.attempt, settledAt: status.settledAt)
    for device in status.devices { ending.note(device.outcome, on: device.platform) }
    // A page of a broadcast names only the devices that have got nothing.
    for (kind, _) in status.counts.entries { ending.note(kind.outcome, on: kind.platform) }
    // Nothing of it was sent.
    if status.state == .expired { ending.failed = .all }
    // The parts of one attempt say different things of one platform.
    guard status.parts > 1, let index = endings[key]?.firstIndex(where: { $0.attempt == status.attempt }) else {
      return endings[key, default: []].append(ending)
    }
    endings[key]?[index].add(ending)
  }

  /// The platforms on which the send has failed last; nil when it has no status.
  private func failed(_ key: SendKey) -> PlatformSet? {
    endings[key]?.sorted { $0.settledAt < $1.settledAt }.reduce(into: []) { failed, ending in
      failed = failed.subtracting(ending.met).union(ending.failed)
    }
  }

  /// The send as it is to be put on the topic again; nil when it is not. A send is given once, however often it is in
  /// the log.
  mutating func replay(_ send: SendRequest, by id: ReplayID) -> SendRequest? {
    guard send.replay == nil, hub == nil || send.hub == hub, accepted.contains(send.acceptedAt) else { return nil }
    // By bytes, as everywhere: names that merely look the same are two users'.
    if let user, send.audience.tag.flatMap(Tag.user(of:))?.utf8.elementsEqual(user.utf8) != true { return nil }
    let key = SendKey(hub: send.hub, id: send.id)
    // It will be dispatched anyway.
    guard !waiting.contains(key) else { return nil }
    var platforms = platform.map { PlatformSet($0) } ?? .all
    if failedOnly, let failed = failed(key) { platforms.formIntersection(failed) }
    guard !send.coveredPlatforms.isDisjoint(with: platforms), taken.insert(key).inserted else { return nil }
    guard !cancelledSends.contains(key) else {
      cancelled += 1
      return nil
    }
    return send.replayed(by: id, on: platforms)
  }
}
