/// A device that a send is to reach.
package struct Target: Hashable, Sendable {
  package let registration: RegistrationID
  package let platform: Platform
  /// In the platform's normal form.
  package let handle: String
  /// When the app reported the handle last.
  package let registeredAt: UnixTime

  package init(registration: RegistrationID, platform: Platform, handle: String, registeredAt: UnixTime) {
    self.registration = registration
    self.platform = platform
    self.handle = handle
    self.registeredAt = registeredAt
  }
}
