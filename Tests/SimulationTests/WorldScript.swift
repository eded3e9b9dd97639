import Testing

@testable import Simulation

/// Runs a script as a task of a simulated process until it ends.
func runInWorld(
  _ world: World = World(seed: 1, trace: Trace()), until end: World.Time = .seconds(3_600),
  _ script: @escaping @Sendable (SimulatedProcess) async throws -> Void
) throws {
  defer { world.stop() }
  let process = SimulatedProcess("test", in: world)
  let outcome = ScriptOutcome()
  process.start {
    do {
      try await script(process)
      outcome.result = .success(())
    } catch {
      outcome.result = .failure(error)
    }
  }
  world.run(until: end) { outcome.result != nil }
  try #require(outcome.result, "the script does not end").get()
}

/// `@unchecked Sendable`: used on the world's thread.
private final class ScriptOutcome: @unchecked Sendable {
  var result: Result<Void, any Error>?
}
