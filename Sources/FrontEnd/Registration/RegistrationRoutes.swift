import FanfareCore
import HTTPServer
import HTTPTypes
import Operations

/// The routes for devices: the app-compatible ones, and the project's own by registration id and by installation id.
struct RegistrationRoutes: Sendable {
  /// How often a patch is tried while others change the same installation.
  private static let attempts = 5

  let access: AccessControl
  let registry: any DeviceRegistry & RegistrationDirectory
  let clock: any WallClock
  let maximumBodySize: Int

  var routes: [Route] {
    [
      Route(.post, "api/register", [.device]) { try await register($0, by: $1) },
      Route(.put, "api/register/{id}", [.device]) { exchange, caller in
        _ = try await complete(exchange, by: caller) { body throws(Refusal) in try DeviceBody(ofApp: body) }
        return Answer(status: .ok)
      },
      Route(.delete, "api/register/{id}", [.device]) { try await remove($0, by: $1) },
      Route(.get, "api/registrations", [.device, .readAll]) { exchange, caller in
        let listing = try RegistrationListRequest(try Query(of: exchange), for: caller)
        return Answer.json(try await listing.page(of: registry, hub: caller.hub.name), isPrivate: true)
      },
      Route(.put, "api/registrations/{id}", [.device]) { exchange, caller in
        let registration = try await complete(exchange, by: caller) { body throws(Refusal) in
          try DeviceBody(body, of: .registration)
        }
        return Answer.json(registration.json, isPrivate: true)
      },
      Route(.put, "api/installations/{id}", [.device]) { try await putInstallation($0, by: $1) },
      Route(.patch, "api/installations/{id}", [.device]) { try await patchInstallation($0, by: $1) },
    ] + routes(of: "api/installations/{id}", find: installation)
      + routes(of: "api/registrations/{id}") { Installation(try await registration($0, in: $1, if: $2), []) }
  }

  /// The routes that read and remove a registration that `find` looks up if it is visible to the caller.
  private func routes(
    of pattern: String,
    find: @escaping @Sendable (Exchange, HubName, (Registration) -> Bool) async throws -> Installation
  ) -> [Route] {
    let read = Route(.get, pattern, [.device, .readAll]) { exchange, caller in
      Answer.json(try await find(exchange, caller.hub.name) { caller.maySee($0) }.json, isPrivate: true)
    }
    let remove = Route(.delete, pattern, [.device, .operate]) { exchange, caller in
      let registration = try await find(exchange, caller.hub.name) { caller.maySee($0) || caller.mayOperate }
        .registration
      try caller.require(anyOf: caller.owns(registration) ? [.device, .operate] : [.operate])
      try await registry.remove(registration.id, hub: registration.hub, user: registration.user, at: clock.now())
      access.security.record(
        caller.owns(registration) ? .deviceRemoved : .othersDeviceRemoved, for: exchange, by: caller,
        details: ["registration.id": registration.id.description])
      return Answer(status: .noContent)
    }
    return [read, remove]
  }

  /// Issues an id for a handle, or with a body registers an installation.
  private func register(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    let handle = try Query(of: exchange).value(of: "handle")
    // The platform is not known yet: only handles that are valid on no platform are refused.
    if let handle,
      handle.utf8.count > DeviceHandle.maximumLength || handle.utf8.contains(where: { $0 < 0x21 || $0 > 0x7E })
    {
      throw Refusal(
        .invalidParameter, "handle must be at most \(DeviceHandle.maximumLength) characters of visible ASCII")
    }
    // Without a body any media type is accepted: some HTTP libraries set one on every request.
    if exchange.bodyLength.isAnnounced { try MediaType.json.require(of: exchange) }
    let body = try await exchange.bytes(upTo: maximumBodySize)
    if body.isEmpty { return try await issue(handle, to: caller) }
    let installation = try AppInstallationBody(body)
    try await charge(caller)
    let registration = try await registry.install(
      DeviceRequest(
        installation: installation.installation, hub: caller.hub.name, user: caller.user,
        platform: installation.platform, handle: installation.handle),
      at: clock.now())
    return .json(registration.json)
  }

  private func issue(_ handle: String?, to caller: Caller) async throws -> Answer {
    try await charge(caller)
    let id = try await registry.issue(hub: caller.hub.name, handle: handle == "" ? nil : handle, at: clock.now())
    var body: [UInt8] = []
    body.appendJSON(id)
    return .json(body)
  }

  /// Completes an issued id, or replaces its registration.
  private func complete(
    _ exchange: Exchange, by caller: Caller,
    read: (ArraySlice<UInt8>) throws(Refusal) -> DeviceBody
  ) async throws -> Registration {
    try MediaType.json.require(of: exchange)
    let body = try read(try await exchange.bytes(upTo: maximumBodySize))
    // Anything but an id was never issued.
    guard let id = exchange.registrationID else {
      throw Refusal(.gone, "there is no such registration id; ask for a new one")
    }
    try await charge(caller)
    return try await registry.complete(body.request(id: id, by: caller), at: clock.now())
  }

  private func remove(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    guard let id = exchange.registrationID else { throw Self.unknownRegistration }
    try await registry.remove(id, hub: caller.hub.name, user: caller.user, at: clock.now())
    access.security.record(
      .deviceRemoved, for: exchange, by: caller, details: ["registration.id": id.description])
    return Answer(status: .ok)
  }

  private func putInstallation(
    _ exchange: Exchange, by caller: Caller
  ) async throws -> Answer {
    try MediaType.json.require(of: exchange)
    guard let installation = exchange.installationID else {
      throw Refusal(.invalidParameter, "the installation's id must be \(Tag.installationRule)")
    }
    let body = try DeviceBody(try await exchange.bytes(upTo: maximumBodySize), of: .installation)
    try await charge(caller, rows: 1 + body.templates.count)
    let registration = try await registry.install(body.request(installation: installation, by: caller), at: clock.now())
    return .json(Installation(registration, body.templates).json, isPrivate: true)
  }

  private func patchInstallation(
    _ exchange: Exchange, by caller: Caller
  ) async throws -> Answer {
    try MediaType.jsonPatch.require(of: exchange)
    let patch = try InstallationPatch(try await exchange.bytes(upTo: maximumBodySize))
    for attempt in 0..<Self.attempts {
      let former = try await installation(exchange, in: caller.hub.name) { caller.maySee($0) || caller.mayOperate }
      guard caller.owns(former.registration) else {
        throw Refusal(.forbidden, "only its user may change an installation")
      }
      let changed = try patch.applied(to: former)
      if attempt == 0 { try await charge(caller, rows: 1 + changed.templates.count) }
      do {
        let registration = try await registry.revise(former.registration, by: changed, at: clock.now())
        return .json(Installation(registration, changed.templates).json, isPrivate: true)
      } catch let error as RegistryError where error.code == .conflict {
        continue
      }
    }
    throw Refusal(.conflict, "the installation is being changed by others; nothing was changed")
  }

  /// Returns the registration of the path's id if it is visible to the caller.
  private func registration(
    _ exchange: Exchange, in hub: HubName, if isVisible: (Registration) -> Bool
  ) async throws -> Registration {
    guard let id = exchange.registrationID, let found = try await registry.registration(id, hub: hub), isVisible(found)
    else { throw Self.unknownRegistration }
    return found
  }

  /// Returns the path's installation if it is visible to the caller.
  private func installation(
    _ exchange: Exchange, in hub: HubName, if isVisible: (Registration) -> Bool
  ) async throws -> Installation {
    guard let id = exchange.installationID,
      let found = Installation(try await registry.registrations(ofInstallation: id, hub: hub)),
      isVisible(found.registration)
    else { throw Refusal(.notFound, "there is no such installation") }
    return found
  }

  /// Takes a permit for each row that is written: a registration, and each template of an installation. Throws
  /// `.overQuota`.
  private func charge(_ caller: Caller, rows: Int = 1) async throws {
    try await caller.hub.quotas.charge(rows, to: .registrations, of: caller.user, at: clock.now())
  }

  private static let unknownRegistration = Refusal(.notFound, "there is no such registration")
}

extension Exchange {
  /// The registration id in the path; nil if it is not a UUID.
  fileprivate var registrationID: RegistrationID? { parameters["id"].flatMap { RegistrationID(String($0)) } }

  /// The installation id in the path; nil if it breaks the rule for such ids.
  fileprivate var installationID: String? {
    parameters["id"].flatMap { Query.decoded($0.utf8) }.flatMap { Tag.isInstallation($0) ? $0 : nil }
  }
}

/// A request for a list of registrations.
/// Its parameters are `user`, `tag` and `handle`, which must all match, `limit` and `cursor`.
///
/// With `read:all` callers see all registrations, others their own.
struct RegistrationListRequest {
  private static let maximumLimit = 1000
  private static let defaultLimit = 100

  private let audiences: [Audience]
  /// The page begins behind this registration.
  private let after: RegistrationID?
  private let limit: Int
  /// The conditions that the audiences do not cover.
  private let matches: @Sendable (Registration) -> Bool

  /// Reads the query. Throws a refusal that names the parameter.
  init(_ query: Query, for caller: Caller) throws(Refusal) {
    try query.requireOnly(["user", "tag", "handle", "limit", "cursor"])
    let (user, tag, handle) = (try query.userName("user"), try query.value(of: "tag"), try query.value(of: "handle"))
    if let tag, !Tag.isAddressable(tag) { throw Refusal(.invalidParameter, "tag must be \(Tag.rule)") }
    limit = try query.limit(upTo: Self.maximumLimit) ?? Self.defaultLimit
    after = try query.cursor { RegistrationID($0) }
    try caller.requireOwn(user)
    let owner = caller.scopes.contains(.readAll) ? user : caller.user
    if let handle {
      let platforms = Platform.allCases.filter { DeviceHandle.problem(with: handle, platform: $0) == nil }
      guard !platforms.isEmpty else { throw Refusal(.invalidParameter, "handle is not valid on any platform") }
      audiences = platforms.map { .device($0, handle: handle) }
    } else {
      // A user has few devices, a tag may have millions: search the user's. So no cursor names another user's device.
      audiences = [owner.map(Audience.user) ?? tag.map(Audience.tag) ?? .everyone]
    }
    matches = { registration in
      (owner.map { $0.utf8.elementsEqual(registration.user.utf8) } ?? true)
        && (tag.map { tag in registration.tags.contains { $0.utf8.elementsEqual(tag.utf8) } } ?? true)
    }
  }

  /// Returns the page as JSON with `registrations` and `next`, the cursor of the next page or null.
  func page(of directory: any RegistrationDirectory, hub: HubName) async throws -> [UInt8] {
    var (found, last): ([Registration], RegistrationID?) = ([], nil)
    if let slice = after.map({ RegistrationSlice.whole.after($0) }) ?? RegistrationSlice.whole {
      for audience in audiences {
        let page = try await directory.list(audience, hub: hub, of: slice, limit: limit)
        found += page.registrations.filter(matches)
        // Only a single audience can have more than one page.
        last = page.last
      }
    }
    return JSONWriter.object {
      $0.member("registrations", found)
      $0.member("next", last)
    }
  }
}
