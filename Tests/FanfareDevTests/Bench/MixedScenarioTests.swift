import Testing

@testable import fanfare_dev

struct MixedScenarioTests {
  /// What is asked of the deliveries: one too few is a device that was left out.
  @Test func everySendIsOwedToTheDevicesThatLive() {
    func device(_ owner: Int, isDead: Bool = false) -> Population.Device {
      Population.Device(number: 0, owner: owner, handle: "a", isDead: isDead)
    }
    let population = Population(devices: [
      device(0), device(0, isDead: true), device(1), device(1), device(2, isDead: true),
    ])
    // Of three sends one goes to each of three users.
    #expect(MixedScenario.liveDevices(of: population, users: 3, sends: 3) == 3)
    #expect(MixedScenario.liveDevices(of: population, users: 3, sends: 6) == 6)
  }

  @Test func someOfItsDevicesAreDead() {
    let population = MixedScenario.population(users: 500)
    let dead = population.devices.filter(\.isDead)
    #expect(!dead.isEmpty && dead.count < population.devices.count / 10)
    #expect(dead.allSatisfy { $0.handle.contains("dead") })
  }
}
