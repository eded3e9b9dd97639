import FanfareCore
import Hummingbird

/// The project's own routes for registrations: looked up by id, and listed by user, tag and handle.
struct DirectoryRoutes: Sendable {
  let gate: Gate
  let registry: any DeviceRegistry & RegistrationDirectory
  let clock: any WallClock
  let maximumBodySize: Int

  /// Adds the routes to a hub's root.
  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.get("api/registrations") { request, context in
      let caller = try await gate.admit(request, context, asOneOf: [.device, .operator])
      let listing = try RegistrationListing(try Query(of: request), for: caller)
      return Response.json(try await listing.page(of: registry, hub: caller.hub.name), isPrivate: true)
    }
    routes.get("api/registrations/{id}") { request, context in
      let caller = try await gate.admit(request, context, asOneOf: [.device, .operator])
      return Response.json(try await find(context, for: caller).json, isPrivate: true)
    }
    routes.put("api/registrations/{id}") { try await put($0, $1) }
    routes.delete("api/registrations/{id}") { request, context in
      let caller = try await gate.admit(request, context, asOneOf: [.device, .operator])
      let registration = try await find(context, for: caller)
      try await registry.remove(registration.id, hub: registration.hub, user: registration.user, at: clock.now())
      return Response(status: .noContent)
    }
  }

  /// Completes an id that was issued, or replaces what is registered under it.
  private func put(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await gate.admit(request, context, as: .device)
    try MediaType.json.require(of: request)
    let body = try DeviceDocument(try await request.bytes(upTo: maximumBodySize))
    guard let id = Self.id(context) else { throw Refusal(.gone, "there is no such registration id; ask for a new one") }
    let registration = try await registry.complete(
      RegistrationRequest(
        id: id, hub: caller.hub.name, user: caller.user, platform: body.platform, handle: body.handle, tags: body.tags),
      at: clock.now())
    return Response.json(registration.json, isPrivate: true)
  }

  /// The registration that the path names, if the caller may know of it.
  private func find(_ context: FrontEndContext, for caller: Caller) async throws -> Registration {
    guard let id = Self.id(context), let registration = try await registry.registration(id, hub: caller.hub.name),
      caller.maySee(registration)
    else { throw Refusal(.notFound, "there is no such registration") }
    return registration
  }

  private static func id(_ context: FrontEndContext) -> RegistrationID? {
    context.parameters["id"].flatMap { RegistrationID(String($0)) }
  }
}
