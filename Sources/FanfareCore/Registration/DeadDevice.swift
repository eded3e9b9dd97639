/// A push service's word that a device can no longer be reached.
package struct DeadDevice: Hashable, Sendable {
  package let hub: HubName
  package let registration: RegistrationID
  /// The handle that was tried, in the platform's normal form.
  package let handle: String
  /// Since when the service holds the handle to be dead; nil when it does not say. A registration renewed after that is
  /// alive.
  package let since: UnixTime?
  /// The service's reason, for the tombstone.
  package let reason: String

  package init(hub: HubName, registration: RegistrationID, handle: String, since: UnixTime?, reason: String) {
    self.hub = hub
    self.registration = registration
    self.handle = handle
    self.since = since
    self.reason = reason
  }
}
