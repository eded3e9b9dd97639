import FanfareCore
import Support
import Testing

@testable import Simulation

/// The model of the registry does what the registry does on SQLite and PostgreSQL (`RegistryTests.ConformanceTests`).
struct RegistryModelTests {
  @Test(arguments: WorkerRegistryConformance.cases)
  func conforms(to promise: WorkerRegistryConformance) throws {
    let world = World(seed: 1, trace: Trace())
    try runInWorld(world) { process in
      try await promise.check(RegistryConnection(of: process, to: SimulatedRegistry(in: world)))
    }
  }
}
