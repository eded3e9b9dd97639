import FanfareCore

/// Who makes a request, in which hub.
struct Caller: Sendable {
  let user: String
  let roles: Set<Role>
  let hub: HubEntry
}
