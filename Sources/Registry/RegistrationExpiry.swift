package import FanfareCore

/// Clears out the registrations of apps that were not heard of for a long time, by walking all of them in small steps.
///
/// Without an index by age: that would cost every app's every start a write, to find what may as well be found hours
/// later.
package struct RegistrationExpiry: Sendable {
  /// How many registrations one step looks at: what it holds the registry's write lock for stays short.
  package static let step = 1000

  private let directory: any RegistrationDirectory
  private let hubs: [HubName]
  private let lifetime: Duration
  private let clock: any WallClock

  /// Clears out the hubs' registrations whose apps were heard of last longer ago than `lifetime`.
  package init(
    directory: any RegistrationDirectory, hubs: [HubName], lifetime: Duration, clock: any WallClock = SystemWallClock()
  ) {
    self.directory = directory
    self.hubs = hubs
    self.lifetime = lifetime
    self.clock = clock
  }

  /// Looks at every registration once, from somewhere on and round: of walks that end early, with a process that is
  /// replaced, each looks at others. `start` says where in all hubs' ids it begins, from 0 up to but not 1.
  ///
  /// After each step `pause` is told how many registrations it has removed, or why it could not be made, and returns
  /// when the next may be made, or that same one again. Throws what `pause` throws.
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
            seenBefore: now + (.zero - lifetime), hub: hub, of: rest, limit: Self.step, at: now)
          removed = .success(step.removed)
          slice = step.last.flatMap(rest.after)
        } catch let error as RegistryError {
          removed = .failure(error)
        }
        try await pause(hub, removed)
      }
    }
  }

  /// The hubs' ids from there on: the rest of a hub, the other hubs, and what comes before in the first one.
  private func round(from start: Double) -> [(hub: HubName, part: RegistrationSlice)] {
    let pages = 1024
    let place = Int(start * Double(hubs.count * pages))
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
