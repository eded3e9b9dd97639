import FanfareCore
import Registry

/// The users and devices that receive the sends.
///
/// Their names and handles are computed from their numbers.
struct Population: Sendable {
  /// A device to register.
  struct Device: Sendable {
    var number: Int
    var owner: Int
    var platform: Platform = .apns
    var handle: String
    var tags: [String] = []
    var locale: String?
    /// Whether the push service reports the device as gone.
    var isDead = false

    /// The request that registers it.
    var request: DeviceRequest {
      DeviceRequest(
        installation: "bench-\(number)", hub: .default, user: Population.user(owner), platform: platform,
        handle: handle, tags: tags, profile: locale.map { DeviceProfile(locale: $0) })
    }
  }

  private(set) var devices: [Device]

  /// The same devices, each with one of the locales.
  func speaking(_ locales: [String]) -> Population {
    var population = self
    for index in population.devices.indices { population.devices[index].locale = locales[index % locales.count] }
    return population
  }

  /// Users with one iPhone each. The devices in the ranges also carry the ranges' tags.
  static func iPhones(_ count: Int, tags: [(tag: String, devices: Range<Int>)] = []) -> Population {
    Population(
      devices: (0..<count).map { number in
        Device(
          number: number, owner: number, handle: handle(number),
          tags: tags.filter { $0.devices.contains(number) }.map(\.tag))
      })
  }

  /// A user's name.
  static func user(_ number: Int) -> String { "user-\(number)" }

  /// An APNs handle of 32 bytes, as Apple's are, that asks a simulator for no fault.
  static func handle(_ number: Int, prefix: String = "5e") -> String {
    // The seeds are spread, because neighbouring seeds of SplitMix64 give the same numbers one step apart.
    var generator = SplitMix64(seed: UInt64(number) &* 0xD129_0B26_88D6_4A7D)
    var text = prefix
    while text.utf8.count < 64 { text += String(generator.next(), radix: 16) }
    return String(text.prefix(64))
  }

  /// A send like one from a caller of the HTTP API.
  static func send(to audience: Audience, number: Int, body: String = "The score is 3 to 1") -> SendRequest {
    let now = SystemWallClock().now()
    return SendRequest(
      id: .timeOrdered(at: now), sender: "bench", acceptedAt: now, audience: audience,
      content: Content(message: Message(title: "Number \(number)", body: body)))
  }

  /// Registers the devices with one request each, 16 at the same time.
  func register(in registry: any DeviceRegistry) async throws {
    let now = SystemWallClock().now()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, device) in devices.enumerated() {
        if index >= 16 { try await group.next() }
        group.addTask { _ = try await registry.install(device.request, at: now) }
      }
      try await group.waitForAll()
    }
  }

  /// Creates a registry of the devices. Throws `RegistryError`.
  func register(in path: String) async throws {
    let registry = try RegistryDatabase(SQLiteRegistryConfiguration(path: path))
    let now = SystemWallClock().now()
    for start in stride(from: 0, to: devices.count, by: 5000) {
      _ = try await registry.install(
        devices[start..<min(start + 5000, devices.count)].map(\.request), at: now)
    }
    registry.close()
  }
}
