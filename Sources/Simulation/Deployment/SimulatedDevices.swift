import FanfareCore

/// The devices of a deployment, and what their users do: another user logs in on a device, an app gets a new handle, is
/// removed or comes back.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedDevices: @unchecked Sendable {
  private let world: World
  private let profile: Profile
  /// The front end.
  private let process: SimulatedProcess
  private let registry: RegistryConnection
  /// As their apps know them; those of the users before those with the tag.
  private var devices: [Registration] = []
  private var tagged = 0

  init(
    _ profile: Profile, services: [PushServiceModel], frontEnd process: SimulatedProcess, registry: SimulatedRegistry
  ) {
    (world, self.profile, self.process) = (registry.world, profile, process)
    self.registry = RegistryConnection(of: process, to: registry)
    for user in 0..<profile.users {
      for _ in 0..<world.random(profile.devicesPerUser) { add(to: services, user: "user\(user)", tags: []) }
    }
    for number in 0..<profile.tagged { add(to: services, user: "reader\(number)", tags: ["news"]) }
    tagged = profile.tagged
    registry.register(devices)
  }

  private func add(to services: [PushServiceModel], user: String, tags: [String]) {
    guard let service = world.element(of: services) else { return }
    let id = RegistrationID.random(using: &world.chance)
    let registered = World.epoch + .seconds(-3600)
    devices.append(
      Registration(
        id: id, hub: service.hub, user: user, platform: service.platform, handle: "\(id)",
        tags: tags + [Tag.username(user)], installation: nil, registeredAt: registered, createdAt: registered))
  }

  /// Lets a device change after a random time, again and again, until the profile's time is over.
  func changeNext() {
    guard profile.moves > 0, !devices.isEmpty else { return }
    world.after(world.pause(perSecond: profile.moves)) { [self] in
      guard world.now < World.Time(profile.duration) else { return }
      // Most of the changes concern the devices of single users, however many others there are.
      let singles = devices.count - tagged
      let range = singles > 0 && world.happens(0.75) ? 0..<singles : 0..<devices.count
      change(Int(world.random(Int64(range.lowerBound)...Int64(range.upperBound - 1))))
      changeNext()
    }
  }

  private func change(_ index: Int) {
    let device = devices[index]
    let user = "user\(world.random(0...Int64(profile.users - 1)))"
    switch world.random(0...9) {
    case 0: process.insist { [self] in try await remove(device) }
    case 1, 2:
      let handle = "\(RegistrationID.random(using: &world.chance))"
      process.insist { [self] in devices[index] = try await register(device, as: device.user, handle) }
    default: process.insist { [self] in devices[index] = try await register(device, as: user, device.handle) }
    }
  }

  private func remove(_ device: Registration) async throws {
    do {
      try await registry.remove(device.id, hub: device.hub, user: device.user, at: process.now())
    } catch let error as RegistryError where error.code == .notFound {
      // Another user has it by now, or the request is a repetition.
    }
  }

  /// As an app does that logs a user in: it asks for the id of its handle, and completes it.
  private func register(_ device: Registration, as user: String, _ handle: String) async throws -> Registration {
    let id = try await registry.issue(hub: device.hub, handle: device.handle, at: process.now())
    let tags = device.tags.filter { !Tag.isReserved($0) }
    return try await registry.complete(
      DeviceRequest(id: id, hub: device.hub, user: user, platform: device.platform, handle: handle, tags: tags),
      at: process.now())
  }
}
