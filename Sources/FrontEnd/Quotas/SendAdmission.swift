import FanfareCore

/// The permits that the sends of one request have taken from their sender's quotas.
///
/// Each send takes a permit. A broadcast also takes one for each device of its estimated audience, and counts as open
/// if that is large; a scheduled send takes its bytes.
struct SendAdmission {
  private let hub: HubEntry
  private let submissions: [Submission]
  private let sender: String
  /// How many of the submissions, from the first, have a permit.
  private(set) var count = 0
  /// The refusals of submissions, by index.
  private(set) var refusals: [Int: Refusal] = [:]
  /// The permits of devices and bytes, and the open broadcasts, by index.
  private var devices: [Int: Int] = [:]
  private var bytes: [Int: Int] = [:]
  private var opened: Set<Int> = []
  /// The permits of the submissions that were not given back.
  private var wanted: [QuotaName: Int] = [:]
  /// The permits that were charged and not refunded. A demand that overdraws is charged for less than it asks.
  private var charged: [QuotaName: Int] = [:]
  /// The submissions whose permits were given back.
  private var returned: Set<Int> = []

  /// Takes from the quotas: the first submissions as far as the rate allows, or `asWhole`: all.
  ///
  /// Throws a refusal if none is admitted, or not all `asWhole`, and `RegistryError` if a reservation is needed and the
  /// registry is unavailable; then nothing is taken.
  init(of submissions: [Submission], in hub: HubEntry, asWhole: Bool, at now: UnixTime) async throws {
    (self.hub, self.submissions) = (hub, submissions)
    sender = submissions.first?.send.sender ?? ""
    guard let receivedAt = submissions.first?.receivedAt else { return }
    let permits = try await hub.quotas.take(
      submissions.count, of: .sends, by: sender, at: receivedAt, asWhole: asWhole)
    count = permits.taken
    (wanted[.sends], charged[.sends]) = (count, count)
    if count < submissions.count {
      let refusal =
        permits.retryAfter.map { hub.quotas.refusal(.sends, retryAfter: $0, count: submissions.count - count) }
        ?? Refusal(describing: RegistryError.withoutReservation)
      guard count > 0 else { throw refusal }
      for index in count..<submissions.count { refusals[index] = refusal }
    }
    do {
      try await admitBroadcasts(asWhole: asWhole, at: receivedAt)
      try await admitHeld(asWhole: asWhole, at: receivedAt)
    } catch {
      await giveBack(Array(0..<count), at: now)
      throw error
    }
  }

  /// Returns what submissions have taken that were certainly not accepted. Repeated indices are ignored.
  mutating func giveBack(_ indices: [Int], at now: UnixTime) async {
    guard !indices.isEmpty, let first = submissions.first else { return }
    let indices = indices.filter { returned.insert($0).inserted }
    let elapsed = max(.zero, now - first.receivedAt)
    func refund(_ name: QuotaName, _ permits: Int) {
      // A demand that overdrew was charged for fewer permits than it wanted. The charge counts for the submissions that
      // are kept; only its excess over their permits is refunded.
      wanted[name, default: 0] -= permits
      let count = max(0, charged[name, default: 0] - wanted[name, default: 0])
      charged[name, default: 0] -= count
      hub.quotas.refund(count, of: name, to: sender, after: elapsed, at: now)
    }
    refund(.sends, indices.count)
    refund(.devices, indices.compactMap { devices[$0] }.clampedSum())
    refund(.storedBytes, indices.compactMap { bytes[$0] }.clampedSum())
    for index in indices where opened.contains(index) {
      await hub.quotas.close(submissions[index].send.id, by: sender)
    }
  }

  private mutating func admitBroadcasts(asWhole: Bool, at now: UnixTime) async throws {
    let broadcasts = (0..<count).filter { submissions[$0].send.isBroadcast }
    guard !broadcasts.isEmpty, hub.quotas.limitsBroadcasts(of: sender) else { return }
    let estimates = await hub.quotas.devices(of: broadcasts.map { submissions[$0].send.audience })
    do {
      let sum = estimates.clampedSum()
      charged[.devices] = try await hub.quotas.charge(sum, to: .devices, of: sender, at: now)
      wanted[.devices] = sum
    } catch let refusal as Refusal {
      return try await refuse(broadcasts, refusal, asWhole: asWhole, at: now)
    }
    for (index, estimate) in zip(broadcasts, estimates) { devices[index] = estimate }
    for (index, estimate) in zip(broadcasts, estimates) {
      guard estimate >= HubQuotas.largeBroadcast else { continue }
      let send = submissions[index].send
      let end = send.acceptedAt + .seconds(send.timeToLive ?? SendRequest.maximumTimeToLive)
      do {
        try await hub.quotas.open(send.id, by: sender, until: end, at: now)
        opened.insert(index)
      } catch let refusal as Refusal {
        try await refuse([index], refusal, asWhole: asWhole, at: now)
      }
    }
  }

  private mutating func admitHeld(asWhole: Bool, at now: UnixTime) async throws {
    let held = (0..<count).filter { submissions[$0].isHeld && refusals[$0] == nil }
    guard !held.isEmpty else { return }
    let sizes = held.map { submissions[$0].send.encoded().count + HubQuotas.rowBytes }
    do {
      let sum = sizes.clampedSum()
      charged[.storedBytes] = try await hub.quotas.charge(sum, to: .storedBytes, of: sender, at: now)
      wanted[.storedBytes] = sum
      for (index, size) in zip(held, sizes) { bytes[index] = size }
    } catch let refusal as Refusal {
      try await refuse(held, refusal, asWhole: asWhole, at: now)
    }
  }

  /// Refuses some of several submissions; throws if all must be accepted or there is only one.
  private mutating func refuse(_ indices: [Int], _ refusal: Refusal, asWhole: Bool, at now: UnixTime) async throws {
    guard !asWhole, submissions.count > 1 else { throw refusal }
    await giveBack(indices, at: now)
    for index in indices { refusals[index] = refusal }
  }
}
