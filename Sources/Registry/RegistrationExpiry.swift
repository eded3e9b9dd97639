package import FanfareCore

/// Removes the registrations of apps that have not been seen for long, and those whose validity has ended, by walking
/// all registrations in small steps.
///
/// A device goes as a whole: an app that still registers a template keeps the registration without one, too.
/// There is no index by age: it would cost a write at every start of every app, and expiry may be hours late.
package struct RegistrationExpiry: Sendable {
  /// The number of registrations examined in one step; small, so that a pause follows soon.
  package static let step = 1000

  private let directory: any RegistrationExpiryStore
  private let hubs: [HubName]
  private let lifetime: Duration?
  private let clock: any WallClock

  /// An expiry of the hubs' registrations whose apps were last seen longer ago than `lifetime`; nil: those alone whose
  /// validity has ended.
  package init(
    directory: any RegistrationExpiryStore, hubs: [HubName], lifetime: Duration?,
    clock: any WallClock = SystemWallClock()
  ) {
    self.directory = directory
    self.hubs = hubs
    self.lifetime = lifetime
    self.clock = clock
  }

  /// Examines every registration once, from a random place on and around: walks that end early, with their process,
  /// examine different registrations each time. `start`, in 0..<1, is the place in the ids of all hubs.
  ///
  /// After each step calls `pause` with the number of removed registrations or the error, and continues when it
  /// returns; a failed step is repeated. Throws the errors of `pause`.
  package func walk(
    from start: Double = .random(in: 0..<1),
    pause: (_ hub: HubName, _ removed: Result<Int, RegistryError>) async throws -> Void
  ) async throws {
    for (hub, part) in round(from: start) {
      var slice: RegistrationSlice? = part
      while let rest = slice {
        let now = clock.now()
        let removed: Result<Int, RegistryError>
        do {
          let step = try await directory.expire(
            seenBefore: lifetime.map { now + (.zero - $0) } ?? UnixTime(milliseconds: 0), hub: hub, of: rest,
            limit: Self.step, at: now)
          removed = .success(step.removed)
          slice = step.last.flatMap(rest.after)
        } catch let error as RegistryError {
          removed = .failure(error)
        }
        try await pause(hub, removed)
      }
    }
  }

  /// The ids of all hubs from the place on: the rest of the first hub, the other hubs, the beginning of the first hub.
  private func round(from start: Double) -> [(hub: HubName, part: RegistrationSlice)] {
    let pages = 1024
    let place = Int(clamping: start * Double(hubs.count * pages))
    guard hubs.indices.contains(place / pages) else { return [] }
    let (first, page) = (place / pages, place % pages)
    let middle = RegistrationSlice.page(page, of: pages).first
    var parts = [(hub: hubs[first], part: RegistrationSlice(first: middle, last: RegistrationSlice.whole.last))]
    parts += (hubs[(first + 1)...] + hubs[..<first]).map { ($0, .whole) }
    if page > 0 {
      let last = RegistrationSlice.page(page - 1, of: pages).last
      parts.append((hubs[first], RegistrationSlice(first: RegistrationSlice.whole.first, last: last)))
    }
    return parts
  }
}

/// Expires registrations. Called by `RegistrationExpiry`.
package protocol RegistrationExpiryStore: Sendable {
  /// Removes registrations in a slice with an earlier `Registration.seenAt`, or a `validUntil` that has passed, and
  /// leaves tombstones.
  ///
  /// The registrations of one handle are removed together, in the slice or not: when none of them was seen since and is
  /// still valid.
  /// Examines at most `limit` registrations of the slice, 1 or more.
  func expire(
    seenBefore: UnixTime, hub: HubName, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) async throws -> ExpiryStep
}

/// The result of one step of expiring registrations.
package struct ExpiryStep: Hashable, Sendable {
  /// The number of removed registrations.
  package let removed: Int
  /// The last registration that was examined; nil at the end of the slice.
  package let last: RegistrationID?
}
