import FanfareCore
import Hummingbird

/// The project's own routes for installations: a device under the id that its app has chosen.
struct InstallationRoutes: Sendable {
  /// How often a change in part is tried while others change the same installation.
  private static let attempts = 5

  let gate: Gate
  let registry: any DeviceRegistry & RegistrationDirectory
  let clock: any WallClock
  let maximumBodySize: Int

  /// Adds the routes to a hub's root.
  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.put("api/installations/{id}") { try await put($0, $1) }
    routes.patch("api/installations/{id}") { try await patch($0, $1) }
    routes.get("api/installations/{id}") { request, context in
      let caller = try await gate.admit(request, context, asOneOf: [.device, .operator])
      return Response.json(try await find(context, for: caller).json, isPrivate: true)
    }
    routes.delete("api/installations/{id}") { request, context in
      let caller = try await gate.admit(request, context, asOneOf: [.device, .operator])
      let registration = try await find(context, for: caller)
      try await registry.remove(registration.id, hub: registration.hub, user: registration.user, at: clock.now())
      return Response(status: .noContent)
    }
  }

  private func put(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await gate.admit(request, context, as: .device)
    try MediaType.json.require(of: request)
    guard let installation = Self.installation(context) else {
      throw Refusal(.invalidParameter, "the installation's id must be \(Tag.installationRule)")
    }
    let body = try DeviceDocument(try await request.bytes(upTo: maximumBodySize))
    let registration = try await registry.install(
      InstallationRequest(
        installation: installation, hub: caller.hub.name, user: caller.user, platform: body.platform,
        handle: body.handle,
        tags: body.tags),
      at: clock.now())
    return Response.json(registration.json, isPrivate: true)
  }

  private func patch(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await gate.admit(request, context, as: .device)
    try MediaType.jsonPatch.require(of: request)
    let patch = try InstallationPatch(try await request.bytes(upTo: maximumBodySize))
    for _ in 0..<Self.attempts {
      let former = try await find(context, for: caller)
      guard caller.owns(former) else { throw Refusal(.forbidden, "only its user may change an installation") }
      let application = try patch.applied(to: former)
      do {
        return Response.json(try await registry.revise(former, by: application, at: clock.now()).json, isPrivate: true)
      } catch let error as RegistryError where error.code == .conflict {
        continue
      }
    }
    throw Refusal(.conflict, "others are changing the installation at the same time; nothing was changed")
  }

  /// The installation that the path names, if the caller may know of it.
  private func find(_ context: FrontEndContext, for caller: Caller) async throws -> Registration {
    guard let installation = Self.installation(context),
      let registration = try await registry.registration(ofInstallation: installation, hub: caller.hub.name),
      caller.maySee(registration)
    else { throw Refusal(.notFound, "there is no such installation") }
    return registration
  }

  /// The id in the path; nil when it can be no installation's.
  private static func installation(_ context: FrontEndContext) -> String? {
    context.parameters["id"].flatMap { Query.decoded($0.utf8) }.flatMap { Tag.isInstallation($0) ? $0 : nil }
  }
}
