import Testing

@testable import Worker

/// Deferred records circulate through the retry topics while an outage lasts.
struct OutageRoundTests {
  /// Far more waits than the worker and its pumps may hold, much of it for one device; and the worker is fast, or not
  /// as fast as all records come back.
  @Test(arguments: [5_000, 300])
  func afterOutageDevicesGetPushesInOrderOfAcceptance(
    speed: Int
  ) throws {
    var simulation = OutageSimulation(users: 30, rate: 20, speed: speed, records: 600)
    try simulation.run(.seconds(5), isLoaded: true)
    simulation.kill()
    try simulation.run(.seconds(120), isLoaded: true)
    simulation.heal()
    #expect(simulation.missing > 2_000)
    try simulation.run(.seconds(150), isLoaded: false)
    #expect(simulation.missing == 0)
    #expect(simulation.inversions == 0)
    #expect(simulation.returned < 9 * simulation.accepted)
  }
}
