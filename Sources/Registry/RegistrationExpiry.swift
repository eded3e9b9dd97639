package import FanfareCore

/// Clears out the registrations of apps that were not heard of for a long time, by walking all of them in small steps.
///
/// Without an index by age: that would cost every app's every start a write, to find what may as well be found hours later.
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

  /// Looks at every registration once. After each step `pause` is told what it has removed, and returns when the next may be made.
  package func walk(pause: (_ hub: HubName, _ removed: Int) async throws -> Void) async throws {
    for hub in hubs {
      var slice: RegistrationSlice? = .whole
      while let rest = slice {
        let now = clock.now()
        let step = try await directory.expire(
          seenBefore: now + (.zero - lifetime), hub: hub, of: rest, limit: Self.step, at: now)
        slice = step.last.flatMap(rest.after)
        try await pause(hub, step.removed)
      }
    }
  }
}
