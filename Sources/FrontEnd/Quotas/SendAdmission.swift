import FanfareCore

/// What the sends of one request take from their sender's quotas.
///
/// Each send takes a permit, which a refusal does not return: that is a permit of a second. A broadcast also takes one
/// for each device of its estimated audience, and counts as open if that is large; a scheduled send takes its bytes.
/// Those are permits of a day. A refused send must not cost them, so one is taken at first, which shows that there are
/// some, and the others once the sends are durable.
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

  /// Takes from the quotas: the first submissions as far as the rate allows, or `asWhole`: all.
  ///
  /// Throws a refusal if none is admitted, or not all `asWhole`, and `RegistryError` if a reservation is needed and the
  /// registry is unavailable.
  init(of submissions: [Submission], in hub: HubEntry, asWhole: Bool) async throws {
    (self.hub, self.submissions) = (hub, submissions)
    sender = submissions.first?.send.sender ?? ""
    guard let receivedAt = submissions.first?.receivedAt else { return }
    let permits = try await hub.quotas.take(
      submissions.count, of: .sends, by: sender, at: receivedAt, asWhole: asWhole)
    count = permits.taken
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
      await close(opened)
      throw error
    }
  }

  /// Takes the rest of what the sends need, except for those that were certainly not accepted.
  func settle(failed: [Int]) async {
    guard let now = submissions.first?.receivedAt else { return }
    let failed = Set(failed).union(refusals.keys)
    await close(opened.intersection(failed))
    for (name, permits) in [(QuotaName.devices, devices), (.storedBytes, bytes)] {
      let rest = permits.filter { !failed.contains($0.key) }.values.clampedSum()
      await hub.quotas.chargeRest(of: rest, to: name, of: sender, at: now)
    }
  }

  private func close(_ indices: Set<Int>) async {
    for index in indices { await hub.quotas.close(submissions[index].send.id, by: sender) }
  }

  private mutating func admitBroadcasts(asWhole: Bool, at now: UnixTime) async throws {
    let broadcasts = (0..<count).filter { submissions[$0].send.isBroadcast }
    guard !broadcasts.isEmpty, hub.quotas.limitsBroadcasts(of: sender) else { return }
    let estimates = await hub.quotas.devices(of: broadcasts.map { submissions[$0].send.audience })
    do {
      try await hub.quotas.charge(1, to: .devices, of: sender, at: now)
    } catch let refusal as Refusal {
      return try refuse(broadcasts, refusal, asWhole: asWhole)
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
        try refuse([index], refusal, asWhole: asWhole)
      }
    }
  }

  private mutating func admitHeld(asWhole: Bool, at now: UnixTime) async throws {
    let held = (0..<count).filter { submissions[$0].isHeld && refusals[$0] == nil }
    guard !held.isEmpty else { return }
    do { try await hub.quotas.charge(1, to: .storedBytes, of: sender, at: now) } catch let refusal as Refusal {
      return try refuse(held, refusal, asWhole: asWhole)
    }
    for index in held { bytes[index] = submissions[index].send.encoded().count + HubQuotas.rowBytes }
  }

  /// Refuses some of several submissions; throws if all must be accepted or there is only one.
  private mutating func refuse(_ indices: [Int], _ refusal: Refusal, asWhole: Bool) throws {
    guard !asWhole, submissions.count > 1 else { throw refusal }
    for index in indices { refusals[index] = refusal }
  }
}
