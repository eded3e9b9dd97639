/// Stores device registrations.
/// The front end changes it; the worker reads it and removes unregistered devices.
///
/// Every method may be called from any task and any process at any time. When a method returns, its change is durable
/// and visible to every later `resolve` in any process. A method throws `RegistryError`; with any code but
/// `.unavailable` nothing was changed.
package protocol DeviceRegistry: Sendable {
  /// Issues an id for a device that is about to register, or returns the id that already has the
  /// handle.
  ///
  /// Of several registrations with the handle only the newest remains. An issued id expires if it is not completed
  /// within an hour. Without a handle the id is always new. The platform is unknown, so the handle is compared as given
  /// and, if it is hexadecimal, in APNs' normal form.
  func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID

  /// Completes, replaces or takes over the registration with the given id.
  /// The handle is removed from any other registration of the hub.
  ///
  /// Throws `.gone` if the id was never issued, has expired, or belongs to another user with a different handle;
  /// `.forbidden` if a tag belongs to another user or to an installation. With a condition throws `.notFound` if there
  /// is no registration with the id, and `.changed` if the condition does not hold for it.
  func complete(_ request: DeviceRequest, if condition: RegistrationCondition?, at now: UnixTime) async throws
    -> Registration

  /// Creates or replaces the registration of an installation.
  ///
  /// Throws `.gone` if the installation belongs to another user with a different handle; `.forbidden` if a tag belongs
  /// to another user or another installation.
  func install(_ request: DeviceRequest, at now: UnixTime) async throws -> Registration

  /// Removes a registration of the user, and with that of an installation its templates.
  /// Throws `.notFound` if it does not exist or belongs to another user, `.changed` if the condition does not hold.
  func remove(
    _ id: RegistrationID, hub: HubName, user: String, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws

  /// The completed registration with the id; nil if there is none.
  func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration?

  /// The devices of each audience in the order of the queries, found in one round trip where no audience is large.
  ///
  /// Each device of an audience is listed once. A `.device` audience yields the registration that has the handle, a
  /// `.registration` audience the registration if its user has had it since the query's `createdBefore`. At most
  /// `limit` registrations, 1 or more, are examined for each audience of a user or a tag; an audience that may have
  /// more has a `last`, and its devices are the first of them in any order. Such an audience is read by pages.
  func resolve(_ queries: [AudienceQuery], limit: Int) async throws -> [AudiencePage]

  /// The next devices of an audience in a slice, by ascending ids, each once.
  ///
  /// At most `limit` candidates, 1 or more, are examined; candidates are the registrations that an index finds for the
  /// audience. Only registrations created (`Registration.createdAt`) at `createdBefore` or earlier are included.
  ///
  /// Consecutive pages (`RegistrationSlice.after` the page's `last`) cover the slice: a device that belongs to the
  /// audience the whole time is on exactly one page.
  func page(_ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int) async throws
    -> AudiencePage

  /// Removes devices that a push service reported as unregistered, and leaves a tombstone with
  /// reason and time.
  ///
  /// A device is kept if its app reported the handle after the service's `since`, or if its handle has changed. Returns
  /// the removed registrations.
  func drop(_ verdicts: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID]

  /// The hubs that have registrations, at most 1,000 of them.
  func hubs() async throws -> [HubName]

  /// Throws if the store cannot be read or written now.
  func check() async throws
}

/// A condition on the registration that a change replaces or removes. It is checked in the transaction of the change:
/// of two changes on the same condition, the second sees the result of the first.
package typealias RegistrationCondition = @Sendable (Registration) -> Bool

extension DeviceRegistry {
  /// Completes a registration without a condition.
  package func complete(_ request: DeviceRequest, at now: UnixTime) async throws -> Registration {
    try await complete(request, if: nil, at: now)
  }

  /// Removes a registration without a condition.
  package func remove(_ id: RegistrationID, hub: HubName, user: String, at now: UnixTime) async throws {
    try await remove(id, hub: hub, user: user, if: nil, at: now)
  }

  /// All devices of each audience, however many.
  package func resolve(_ queries: [AudienceQuery]) async throws -> [[Target]] {
    try await resolve(queries, limit: .max).map(\.targets)
  }
}

/// A query for the devices of an audience on some platforms of a hub.
package struct AudienceQuery: Hashable, Sendable {
  package let hub: HubName
  package let audience: Audience
  package let platforms: PlatformSet
  /// For a `.registration` audience: the registration must have belonged to its user by then; nil:
  /// no condition. Ignored for other audiences.
  package let createdBefore: UnixTime?
  /// The templates to render from. Nil: the audience is the registrations without a template of their own.
  package let template: TemplateSource?

  package init(
    hub: HubName, audience: Audience, platforms: PlatformSet, createdBefore: UnixTime? = nil,
    template: TemplateSource? = nil
  ) {
    self.template = template
    self.hub = hub
    self.audience = audience
    self.platforms = platforms
    self.createdBefore = createdBefore
  }
}

/// A page of the devices of an audience; see `DeviceRegistry.page`.
package struct AudiencePage: Hashable, Sendable {
  /// The devices by ascending ids, each once.
  package let targets: [Target]
  /// The number of candidates that were examined.
  package let examined: Int
  /// The last candidate that was examined; nil at the end of the slice.
  package let last: RegistrationID?

  package init(targets: [Target], examined: Int, last: RegistrationID?) {
    self.targets = targets
    self.examined = examined
    self.last = last
  }
}

/// A device to which a send is pushed.
package struct Target: Hashable, Sendable {
  package let registration: RegistrationID
  package let platform: Platform
  /// The handle in normal form.
  package let handle: String
  /// When the app last reported the handle.
  package let registeredAt: UnixTime
  /// The template to render the push from; nil unless the query named templates.
  package let variant: TemplateVariant?

  package init(
    registration: RegistrationID, platform: Platform, handle: String, registeredAt: UnixTime,
    variant: TemplateVariant? = nil
  ) {
    self.variant = variant
    self.registration = registration
    self.platform = platform
    self.handle = handle
    self.registeredAt = registeredAt
  }
}

/// A push service's report that a device is no longer registered.
package struct DeadDevice: Hashable, Sendable {
  package let hub: HubName
  package let registration: RegistrationID
  /// The handle that was used, in normal form.
  package let handle: String
  /// The time since which the service considers the handle unregistered; nil if it names none.
  /// A registration renewed after that time is kept.
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
