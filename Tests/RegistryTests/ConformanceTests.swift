import FanfareCore
import Registry
import Support
import Testing

@Suite(.timeLimit(.minutes(2))) struct ConformanceTests {
  @Test(arguments: RegistryEngine.available, DeviceRegistryConformance.cases)
  func conforms(_ engine: RegistryEngine, to promise: DeviceRegistryConformance) async throws {
    try await engine.withRegistry { registry, _ in try await promise.check(registry) }
  }

  @Test(arguments: RegistryEngine.available, DeviceRegistryConformance.limited)
  func conformsWithLimits(_ engine: RegistryEngine, to promise: DeviceRegistryConformance) async throws {
    try await engine.withRegistry(limits: DeviceRegistryConformance.limits) { registry, _ in
      try await promise.check(registry)
    }
  }
}

/// A request to complete an id for an APNs device.
func application(_ id: RegistrationID, _ user: String, _ handle: String, tags: [String] = []) -> DeviceRequest {
  DeviceRequest(id: id, hub: .default, user: user, platform: .apns, handle: handle, tags: tags)
}

/// A query of the default hub on every platform.
func query(_ audience: Audience) -> AudienceQuery {
  AudienceQuery(hub: .default, audience: audience, platforms: .all)
}
