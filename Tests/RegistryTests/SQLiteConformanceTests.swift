import FanfareCore
import Support
import Testing

@Suite struct SQLiteConformanceTests {
  @Test(arguments: DeviceRegistryConformance.cases)
  func keeps(promise: DeviceRegistryConformance) async throws {
    let temporary = try TemporaryRegistry()
    try await promise.check(temporary.registry)
  }
}
