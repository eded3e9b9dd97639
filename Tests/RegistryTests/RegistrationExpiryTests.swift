import FanfareCore
import Support
import Testing

@testable import Registry

@Suite(.timeLimit(.minutes(2))) struct RegistrationExpiryTests {
  private let clock = ManualClock()

  @Test func aWalkClearsOutWhatWasNotHeardOf() async throws {
    let temporary = try TemporaryRegistry()
    let registry = temporary.registry
    let other = try #require(HubName("other"))
    let expiry = RegistrationExpiry(directory: registry, hubs: [.default, other], lifetime: .seconds(3600), clock: clock)
    func register(_ handle: String, hub: HubName = .default) async throws -> RegistrationID {
      let id = try await registry.issue(hub: hub, handle: nil, at: clock.now())
      _ = try await registry.complete(
        RegistrationApplication(id: id, hub: hub, user: "alice", platform: .fcm, handle: handle, tags: ["t"]), at: clock.now())
      return id
    }
    func walk() async throws -> [HubName: Int] {
      var removed: [HubName: Int] = [:]
      try await expiry.walk { removed[$0, default: 0] += $1 }
      return removed
    }
    let early = try await register("h1")
    let elsewhere = try await register("h1", hub: other)
    clock.advance(by: .seconds(1800))
    let late = try await register("h2")
    clock.advance(by: .seconds(1800))
    #expect(try await walk() == [.default: 0, other: 0], "of exactly that age: not yet")
    clock.advance(by: .milliseconds(1))
    let then = clock.now()
    #expect(try await walk() == [.default: 1, other: 1])
    #expect(try await walk() == [.default: 0, other: 0])
    #expect(try await registry.registration(early, hub: .default) == nil)
    #expect(try await registry.registration(elsewhere, hub: other) == nil)
    #expect(try await registry.registration(late, hub: .default) != nil)
    #expect(try await registry.tombstone(of: early, hub: .default) == Tombstone(cause: .expired, detail: "", at: then))
    #expect(try await registry.resolve([query(.tag("t"))])[0].map(\.registration) == [late])
  }

  @Test func aStepLooksAtABoundedNumberByKey() async throws {
    let temporary = try TemporaryRegistry()
    let registry = temporary.registry
    let count = RegistrationExpiry.step + 200
    try await registry.write { db in
      let table = RegistrationTable(db, .default)
      for number in 0..<count {
        let registration = Registration(
          id: .random(), hub: .default, user: "u", platform: .fcm, handle: "h\(number)", tags: [], installation: nil,
          registeredAt: clock.now(), createdAt: clock.now())
        try table.put(registration, replacing: nil)
      }
    }
    clock.advance(by: .seconds(10))
    var steps: [Int] = []
    let expiry = RegistrationExpiry(directory: registry, hubs: [.default], lifetime: .seconds(1), clock: clock)
    try await expiry.walk { steps.append($1) }
    #expect(steps == [RegistrationExpiry.step, 200])
  }
}
