import FanfareCore
import Support
import Synchronization
import Testing

@testable import Registry

@Suite(.timeLimit(.minutes(2))) struct RegistrationExpiryTests {
  private let clock = ManualClock()

  @Test func walkRemovesRegistrationsThatWereNotSeen() async throws {
    let temporary = try TemporaryRegistry()
    let registry = temporary.registry
    let other = try #require(HubName("other"))
    let expiry = RegistrationExpiry(
      directory: registry, hubs: [.default, other], lifetime: .seconds(3600), clock: clock)
    func register(_ handle: String, hub: HubName = .default) async throws -> RegistrationID {
      let id = try await registry.issue(hub: hub, handle: nil, at: clock.now())
      _ = try await registry.complete(
        DeviceRequest(id: id, hub: hub, user: "alice", platform: .fcm, handle: handle, tags: ["t"]),
        at: clock.now())
      return id
    }
    func walk() async throws -> [HubName: Int] {
      var removed: [HubName: Int] = [:]
      try await expiry.walk { removed[$0, default: 0] += try $1.get() }
      return removed
    }
    let early = try await register("h1")
    let elsewhere = try await register("h1", hub: other)
    clock.advance(by: .seconds(1800))
    let late = try await register("h2")
    clock.advance(by: .seconds(1800))
    #expect(try await walk() == [.default: 0, other: 0], "not yet at exactly that age")
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

  @Test func stepExaminesABoundedNumberByKey() async throws {
    let temporary = try TemporaryRegistry()
    let registry = temporary.registry
    let count = RegistrationExpiry.step + 200
    try await registry.write { session in
      let table = RegistrationTable(session, .default)
      for number in 0..<count {
        let registration = Registration(
          id: .random(), hub: .default, user: "u", platform: .fcm, handle: "h\(number)", tags: [], installation: nil,
          registeredAt: clock.now(), createdAt: clock.now())
        try table.put(registration, in: RegistrationClaim(id: registration.id, stored: nil, holder: registration.id))
      }
    }
    clock.advance(by: .seconds(10))
    var steps: [Int] = []
    let expiry = RegistrationExpiry(directory: registry, hubs: [.default], lifetime: .seconds(1), clock: clock)
    try await expiry.walk(from: 0) { steps.append(try $1.get()) }
    #expect(steps == [RegistrationExpiry.step, 200])
  }

  @Test(arguments: [0, 0.3, 0.5, 0.75, 0.9999]) func walkExaminesEverythingFromAnyStart(start: Double) async throws {
    let hubs = [HubName.default, try #require(HubName("other"))]
    let directory = ScriptedDirectory()
    let expiry = RegistrationExpiry(directory: directory, hubs: hubs, lifetime: .seconds(1), clock: clock)
    try await expiry.walk(from: start) { _, _ in }
    let asked = directory.asked
    #expect(asked.first?.hub == hubs[start < 0.5 ? 0 : 1])
    for hub in hubs {
      var rest: RegistrationSlice? = .whole
      for slice in asked.filter({ $0.hub == hub }).map(\.slice).sorted(by: { $0.first < $1.first }) {
        #expect(slice.first == rest?.first)
        rest = rest?.after(slice.last)
      }
      #expect(rest == nil)
    }
    let share = asked.first.map { RegistrationSlice.whole.share(upTo: $0.slice.first) } ?? 0
    #expect(abs(share - (start * 2).truncatingRemainder(dividingBy: 1)) < 0.01)
  }

  @Test func failedStepIsRepeated() async throws {
    let failure = RegistryError(.unavailable, "not now")
    let answers: [Result<ExpiryStep, RegistryError>] = [
      .success(ExpiryStep(removed: 1, last: RegistrationSlice.page(1, of: 4).last)),
      .success(ExpiryStep(removed: 2, last: RegistrationSlice.page(2, of: 4).last)), .failure(failure),
    ]
    let directory = ScriptedDirectory(answers)
    let expiry = RegistrationExpiry(directory: directory, hubs: [.default], lifetime: .seconds(1), clock: clock)
    var steps: [Result<Int, RegistryError>] = []
    try await expiry.walk(from: 0.25) { steps.append($1) }
    #expect(steps == [.success(1), .success(2), .failure(failure), .success(0), .success(0)])
    #expect(directory.asked.map { $0.slice.first.high >> 62 } == [1, 2, 3, 3, 0], "each step is a quarter")
  }
}

/// A store that records its calls and returns scripted results; after the last one, that nothing was removed.
private final class ScriptedDirectory: RegistrationExpiryStore {
  private let state:
    Mutex<(asked: [(hub: HubName, slice: RegistrationSlice)], answers: [Result<ExpiryStep, RegistryError>])>

  init(_ answers: [Result<ExpiryStep, RegistryError>] = []) { state = Mutex((asked: [], answers: answers)) }

  var asked: [(hub: HubName, slice: RegistrationSlice)] { state.withLock(\.asked) }

  func expire(
    seenBefore: UnixTime, hub: HubName, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) async throws -> ExpiryStep {
    try state.withLock { state -> Result<ExpiryStep, RegistryError> in
      state.asked.append((hub, slice))
      return state.answers.isEmpty ? .success(ExpiryStep(removed: 0, last: nil)) : state.answers.removeFirst()
    }.get()
  }
}
