import Testing

@testable import Worker

/// What goes round by the retry topics for as long as an outage lasts.
struct OutageRoundTests {
  /// Far more waits than the worker may hold, and it is fast, or hardly as fast as everything comes back.
  @Test(arguments: [5_000, 300])
  func `after an outage everything comes, to each device in the order of acceptance, and hardly goes round any more`(
    speed: Int
  ) throws {
    var simulation = OutageSimulation(users: 30, rate: 20, speed: speed) { $0.maximumRecords = 300 }
    try simulation.run(.seconds(5), isLoaded: true)
    simulation.kill()
    try simulation.run(.seconds(120), isLoaded: true)
    simulation.heal()
    let (waiting, before) = (simulation.missing, simulation.returned)
    try simulation.run(.seconds(60), isLoaded: false)
    #expect(waiting > 2_000)
    #expect(simulation.missing == 0)
    #expect(simulation.inversions == 0)
    #expect(simulation.returned - before < 3 * waiting)
  }
}
