import FanfareCore
import Hummingbird

/// The project's own routes for devices, by registration id and by installation id.
struct DeviceRoutes: Sendable {
  /// How often a patch is tried while others change the same installation.
  private static let attempts = 5

  let access: AccessControl
  let registry: any DeviceRegistry & RegistrationDirectory
  let clock: any WallClock
  let maximumBodySize: Int

  /// Adds the routes to a hub's root.
  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.get("api/registrations") { request, context in
      let caller = try await access.admit(request, context, as: .device, .operator)
      let listing = try RegistrationListing(try Query(of: request), for: caller)
      return Response.json(try await listing.page(of: registry, hub: caller.hub.name), isPrivate: true)
    }
    routes.put("api/registrations/{id}") { try await putRegistration($0, $1) }
    routes.put("api/installations/{id}") { try await putInstallation($0, $1) }
    routes.patch("api/installations/{id}") { try await patchInstallation($0, $1) }
    add(to: routes, path: "api/registrations/{id}", find: registration)
    add(to: routes, path: "api/installations/{id}", find: installation)
  }

  /// Adds `GET` and `DELETE` of registrations that `find` looks up.
  private func add(
    to routes: some RouterMethods<FrontEndContext>, path: RouterPath,
    find: @escaping @Sendable (FrontEndContext, Caller) async throws -> Registration
  ) {
    routes.get(path) { request, context in
      let caller = try await access.admit(request, context, as: .device, .operator)
      return Response.json(try await find(context, caller).json, isPrivate: true)
    }
    routes.delete(path) { request, context in
      let caller = try await access.admit(request, context, as: .device, .operator)
      let registration = try await find(context, caller)
      try await registry.remove(registration.id, hub: registration.hub, user: registration.user, at: clock.now())
      return Response(status: .noContent)
    }
  }

  /// Completes an issued id, or replaces its registration.
  private func putRegistration(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await access.admit(request, context, as: .device)
    try MediaType.json.require(of: request)
    let body = try DeviceBody(try await request.bytes(upTo: maximumBodySize))
    guard let id = context.registrationID else { throw Refusal.unknownRegistrationID }
    let registration = try await registry.complete(
      RegistrationRequest(
        id: id, hub: caller.hub.name, user: caller.user, platform: body.platform, handle: body.handle, tags: body.tags),
      at: clock.now())
    return Response.json(registration.json, isPrivate: true)
  }

  private func putInstallation(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await access.admit(request, context, as: .device)
    try MediaType.json.require(of: request)
    guard let installation = context.installationID else {
      throw Refusal(.invalidParameter, "the installation's id must be \(Tag.installationRule)")
    }
    let body = try DeviceBody(try await request.bytes(upTo: maximumBodySize))
    let registration = try await registry.install(
      InstallationRequest(
        installation: installation, hub: caller.hub.name, user: caller.user, platform: body.platform,
        handle: body.handle, tags: body.tags),
      at: clock.now())
    return Response.json(registration.json, isPrivate: true)
  }

  private func patchInstallation(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await access.admit(request, context, as: .device)
    try MediaType.jsonPatch.require(of: request)
    let patch = try InstallationPatch(try await request.bytes(upTo: maximumBodySize))
    for _ in 0..<Self.attempts {
      let former = try await installation(context, for: caller)
      guard caller.owns(former) else { throw Refusal(.forbidden, "only its user may change an installation") }
      let application = try patch.applied(to: former)
      do {
        return Response.json(try await registry.revise(former, by: application, at: clock.now()).json, isPrivate: true)
      } catch let error as RegistryError where error.code == .conflict {
        continue
      }
    }
    throw Refusal(.conflict, "the installation is being changed by others; nothing was changed")
  }

  /// Returns the registration of the path's id if the caller may see it.
  private func registration(_ context: FrontEndContext, for caller: Caller) async throws -> Registration {
    guard let id = context.registrationID, let found = try await registry.registration(id, hub: caller.hub.name),
      caller.maySee(found)
    else { throw Refusal.unknownRegistration }
    return found
  }

  /// Returns the registration of the path's installation if the caller may see it.
  private func installation(_ context: FrontEndContext, for caller: Caller) async throws -> Registration {
    guard let id = context.installationID,
      let found = try await registry.registration(ofInstallation: id, hub: caller.hub.name), caller.maySee(found)
    else { throw Refusal(.notFound, "there is no such installation") }
    return found
  }
}

extension FrontEndContext {
  /// The registration id in the path; nil if it is not a UUID.
  var registrationID: RegistrationID? { parameters["id"].flatMap { RegistrationID(String($0)) } }

  /// The installation id in the path; nil if it breaks the rule for such ids.
  fileprivate var installationID: String? {
    parameters["id"].flatMap { Query.decoded($0.utf8) }.flatMap { Tag.isInstallation($0) ? $0 : nil }
  }
}

extension Refusal {
  static let unknownRegistration = Refusal(.notFound, "there is no such registration")
  /// Tells the app to ask for a new id, also if the id was never issued.
  static let unknownRegistrationID = Refusal(.gone, "there is no such registration id; ask for a new one")
}
