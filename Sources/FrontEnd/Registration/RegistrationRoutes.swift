import FanfareCore
import Hummingbird

/// The app-compatible routes by which apps register their devices.
struct RegistrationRoutes: Sendable {
  let access: AccessControl
  let registry: any DeviceRegistry
  let clock: any WallClock
  let maximumBodySize: Int

  /// Adds the routes to a hub's root.
  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.post("api/register") { try await register($0, $1) }
    routes.put("api/register/{id}") { try await complete($0, $1) }
    routes.delete("api/register/{id}") { try await remove($0, $1) }
  }

  /// Issues an id for a handle, or with a body registers an installation.
  private func register(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await access.admit(request, context, as: .device)
    let query = try Query(of: request)
    let body = try await request.bytes(upTo: maximumBodySize)
    // Whatever its media type: some HTTP libraries set one on every request.
    if body.isEmpty { return try await issue(try query.value(of: "handle"), to: caller) }
    try MediaType.json.require(of: request)
    return try await install(try AppInstallationBody(body), for: caller)
  }

  private func issue(_ handle: String?, to caller: Caller) async throws -> Response {
    // The platform is not known yet: only handles that are valid on no platform are refused.
    if let handle,
      handle.utf8.count > DeviceHandle.maximumLength || handle.utf8.contains(where: { $0 < 0x21 || $0 > 0x7E })
    {
      throw Refusal(
        .invalidParameter, "handle must be at most \(DeviceHandle.maximumLength) characters of visible ASCII")
    }
    let id = try await registry.issue(hub: caller.hub.name, handle: handle == "" ? nil : handle, at: clock.now())
    var body: [UInt8] = []
    body.appendJSON(id)
    return .json(body)
  }

  private func install(_ body: AppInstallationBody, for caller: Caller) async throws -> Response {
    let registration = try await registry.install(
      InstallationRequest(
        installation: body.installation, hub: caller.hub.name, user: caller.user, platform: body.platform,
        handle: body.handle),
      at: clock.now())
    return .json(registration.json)
  }

  private func complete(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await access.admit(request, context, as: .device)
    try MediaType.json.require(of: request)
    let body = try AppRegistrationBody(try await request.bytes(upTo: maximumBodySize))
    guard let id = context.registrationID else { throw Refusal.unknownRegistrationID }
    _ = try await registry.complete(
      RegistrationRequest(
        id: id, hub: caller.hub.name, user: caller.user, platform: body.platform, handle: body.handle, tags: body.tags),
      at: clock.now())
    return Response(status: .ok)
  }

  private func remove(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await access.admit(request, context, as: .device)
    guard let id = context.registrationID else { throw Refusal.unknownRegistration }
    try await registry.remove(id, hub: caller.hub.name, user: caller.user, at: clock.now())
    return Response(status: .ok)
  }
}
