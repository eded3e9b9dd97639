import FanfareCore

/// Decides which logged sends are dispatched again, and on which platforms.
///
/// A pure value. The caller first notes the waiting and the settled sends, then asks about each logged send.
struct ReplaySelection {
  /// The range of acceptance times.
  let accepted: Range<UnixTime>
  /// Only sends for this platform, and only there; nil for all.
  let platform: Platform?
  /// Only sends to this user; nil for all.
  let user: String?
  /// Only sends of this hub; nil for all.
  let hub: HubName?
  /// Whether to select only platforms with a failed device in the last status, and sends without one.
  let failedOnly: Bool

  /// The status records of one attempt at a send.
  private struct Ending {
    let attempt: DispatchID?
    var settledAt: UnixTime
    /// The platforms in these records, and those on which a device failed.
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
  /// The number of cancelled sends among those that match.
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

  /// Notes that a record of the send is not processed yet.
  mutating func noteWaiting(_ send: SendKey) { waiting.insert(send) }

  /// Notes a settled part of a send.
  ///
  /// Records of one send are in several partitions and come in any order. The result of a later attempt replaces that
  /// of an earlier one for the same platform.
  mutating func note(_ status: StatusRecord) {
    guard accepted.contains(status.acceptedAt) else { return }
    let key = SendKey(hub: status.hub, id: status.send)
    // A cancelled send must not arrive, even if other records report other outcomes.
    if status.state == .cancelled { cancelledSends.insert(key) }
    guard failedOnly else { return }
    var ending = Ending(attempt: status.attempt, settledAt: status.settledAt)
    for device in status.devices { ending.note(device.outcome, on: device.platform) }
    // A page of a broadcast lists only the devices that failed.
    for (kind, _) in status.counts.entries { ending.note(kind.outcome, on: kind.platform) }
    // An expired send was not pushed at all.
    if status.state == .expired { ending.failed = .all }
    // The parts of one attempt can have different results for a platform.
    guard status.parts > 1, let index = endings[key]?.firstIndex(where: { $0.attempt == status.attempt }) else {
      return endings[key, default: []].append(ending)
    }
    endings[key]?[index].add(ending)
  }

  /// The platforms on which the send failed last; nil without a status.
  private func failed(_ key: SendKey) -> PlatformSet? {
    endings[key]?.sorted { $0.settledAt < $1.settledAt }.reduce(into: []) { failed, ending in
      failed = failed.subtracting(ending.met).union(ending.failed)
    }
  }

  /// The send to produce, or nil to skip it. Returns a send only once, even if it is in the log often.
  mutating func replay(_ send: SendRequest, by id: ReplayID) -> SendRequest? {
    guard send.replay == nil, hub == nil || send.hub == hub, accepted.contains(send.acceptedAt) else { return nil }
    // Compared as bytes, as everywhere: names that are equal only in Unicode's sense belong to different users.
    if let user, send.audience.tag.flatMap(Tag.user(of:))?.utf8.elementsEqual(user.utf8) != true { return nil }
    let key = SendKey(hub: send.hub, id: send.id)
    // A worker will dispatch this send anyway.
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
