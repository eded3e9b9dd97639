import FanfareCore
import HTTPServer
import Support
import Synchronization
import Testing

@testable import FrontEnd

@Suite struct APIKeyVerifierTests {
  private let clock = ManualClock()
  private let store = ScriptedKeyStore()
  private let log = LogRecorder()
  private var verifier: APIKeyVerifier {
    APIKeyVerifier(hub: .default, store: store, clock: clock, logger: log.logger)
  }

  private func stored(_ key: APIKey, expiresIn lifetime: Duration? = nil) -> StoredAPIKey {
    StoredAPIKey(
      hub: .default, id: key.id, user: "backend", scopes: ["send:user"], digest: key.digest, createdAt: clock.now(),
      expiresAt: lifetime.map { clock.now() + $0 })
  }

  @Test func keyIsLookedUpOnceInFiveSecondsAndRevokedAfterThat() async throws {
    let (key, verifier) = (APIKey(), verifier)
    store.set(stored(key))
    for _ in 0..<100 { #expect(try await verifier.verify(key.text, from: .unknown)?.user == "backend") }
    #expect(store.lookUps == 1 && store.marks == 1)
    store.remove(key.id)
    clock.advance(by: .milliseconds(4999))
    #expect(try await verifier.verify(key.text, from: .unknown) != nil && store.lookUps == 1)
    clock.advance(by: .milliseconds(1))
    for _ in 0..<100 { #expect(try await verifier.verify(key.text, from: .unknown) == nil) }
    #expect(store.lookUps == 2, "the missing key is remembered too")
    store.set(stored(key))
    clock.advance(by: .seconds(5))
    #expect(try await verifier.verify(key.text, from: .unknown) != nil)
    // Set back: the answer of the future is not used.
    store.remove(key.id)
    clock.advance(by: .seconds(-60))
    #expect(try await verifier.verify(key.text, from: .unknown) == nil)
  }

  @Test func wrongSecretsMistypedAndExpiredKeysAreRefused() async throws {
    let (key, other, verifier) = (APIKey(), APIKey(), verifier)
    store.set(stored(key, expiresIn: .seconds(2)))
    // The id of the one with the secret of the other.
    let mixed = key.text.prefix(20) + other.text.dropFirst(20)
    #expect(try await verifier.verify(String(mixed), from: .unknown) == nil, "its checksum is wrong")
    #expect(try await verifier.verify("fanfare_" + String(repeating: "0", count: 61), from: .unknown) == nil)
    #expect(store.lookUps == 0)
    store.set(
      StoredAPIKey(
        hub: .default, id: other.id, user: "backend", scopes: [], digest: key.digest, createdAt: clock.now()))
    #expect(try await verifier.verify(other.text, from: .unknown) == nil, "the stored digest is that of another secret")
    #expect(try await verifier.verify(key.text, from: .unknown) != nil)
    clock.advance(by: .seconds(2))
    #expect(try await verifier.verify(key.text, from: .unknown) == nil)
    #expect(store.marks == 1, "only a valid key counts as used")
  }

  @Test func knownKeysWorkForFiveMinutesWhileTheStoreFails() async throws {
    let (key, stranger, verifier) = (APIKey(), APIKey(), verifier)
    store.set(stored(key))
    #expect(try await verifier.verify(key.text, from: .unknown) != nil)
    store.fail(true)
    for _ in 0..<59 {
      clock.advance(by: .seconds(5))
      #expect(try await verifier.verify(key.text, from: .unknown) != nil)
      await #expect(throws: AuthenticationError.unavailable) {
        try await verifier.verify(stranger.text, from: .unknown)
      }
    }
    clock.advance(by: .seconds(5))
    await #expect(throws: AuthenticationError.unavailable) { try await verifier.verify(key.text, from: .unknown) }
    store.fail(false)
    #expect(try await verifier.verify(key.text, from: .unknown) != nil)
  }

  @Test func lookUpsAreSharedAndThoseOfStrangersAreLimited() async throws {
    let (key, other, verifier) = (APIKey(), APIKey(), verifier)
    let perNetwork = APIKeyVerifier.maximumStrangersPerNetwork
    store.set(stored(key))
    store.set(stored(other))
    #expect(try await verifier.verify(key.text, from: .unknown) != nil)
    store.hold()
    try await withThrowingTaskGroup(of: Bool.self) { group in
      let strangers = (0..<perNetwork).map { _ in APIKey() }
      for stranger in strangers + strangers {
        group.addTask { try await verifier.verify(stranger.text, from: .unknown) != nil }
      }
      await store.held(perNetwork)
      await #expect(throws: AuthenticationError.overloaded) { try await verifier.verify(APIKey().text, from: .unknown) }
      // Strangers of one network do not keep an unknown key of another one waiting.
      let elsewhere = try #require(ClientAddress("192.0.2.1"))
      group.addTask { try await verifier.verify(other.text, from: elsewhere) != nil }
      // A known key whose look-up is due: one request asks again, the others use the known answer.
      clock.advance(by: .seconds(5))
      group.addTask { try await verifier.verify(key.text, from: .unknown) != nil }
      await store.held(perNetwork + 2)
      for _ in 0..<10 { #expect(try await verifier.verify(key.text, from: .unknown) != nil) }
      store.release()
      var accepted = 0
      for try await isAccepted in group { accepted += isAccepted ? 1 : 0 }
      #expect(accepted == 2)
    }
    #expect(store.lookUps == perNetwork + 3)
  }

  @Test func lookUpsOfStrangersOfAllNetworksAreLimited() async throws {
    let verifier = verifier
    store.hold()
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<APIKeyVerifier.maximumStrangers {
        let address = try #require(ClientAddress("192.0.2.\(number)"))
        group.addTask { try await verifier.verify(APIKey().text, from: address) != nil }
      }
      await store.held(APIKeyVerifier.maximumStrangers)
      await #expect(throws: AuthenticationError.overloaded) { try await verifier.verify(APIKey().text, from: .unknown) }
      store.release()
      for try await isAccepted in group { #expect(!isAccepted) }
    }
    #expect(try await verifier.verify(APIKey().text, from: .unknown) == nil, "all places are free again")
  }

  @Test func useIsStoredOnceADay() async throws {
    let (key, verifier) = (APIKey(), verifier)
    store.set(stored(key))
    for day in 1...3 {
      for _ in 0..<10 {
        #expect(try await verifier.verify(key.text, from: .unknown) != nil)
        clock.advance(by: .seconds(3))
      }
      #expect(store.marks == day)
      clock.advance(by: .seconds(86_400))
    }
    #expect(!log.text.contains(key.text.suffix(49)) && !log.text.contains("backend"))
  }
}

/// A store of keys that fails or waits as the test decides.
final class ScriptedKeyStore: APIKeyStore {
  private struct State {
    var keys: [String: StoredAPIKey] = [:]
    var isFailing = false
    var isHolding = false
    var lookUps = 0
    var marks = 0
    var held: [CheckedContinuation<Void, Never>] = []
    var observers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  var lookUps: Int { state.withLock(\.lookUps) }
  /// How often a use was stored.
  var marks: Int { state.withLock(\.marks) }

  func set(_ key: StoredAPIKey) { state.withLock { $0.keys[key.id] = key } }
  func remove(_ id: String) { state.withLock { $0.keys[id] = nil } }
  func fail(_ isFailing: Bool) { state.withLock { $0.isFailing = isFailing } }

  /// Look-ups from now on wait for `release`.
  func hold() { state.withLock { $0.isHolding = true } }

  func release() {
    let held = state.withLock { state in
      state.isHolding = false
      defer { state.held = [] }
      return state.held
    }
    for continuation in held { continuation.resume() }
  }

  /// Returns when that many look-ups wait.
  func held(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isReached = state.withLock { state in
        if state.held.count >= count { return true }
        state.observers.append((count, continuation))
        return false
      }
      if isReached { continuation.resume() }
    }
  }

  func apiKey(_ id: String, hub: HubName) async throws -> StoredAPIKey? {
    await withCheckedContinuation { continuation in
      let (isHeld, observers) = state.withLock { state in
        state.lookUps += 1
        guard state.isHolding else { return (false, [CheckedContinuation<Void, Never>]()) }
        state.held.append(continuation)
        let count = state.held.count
        let reached = state.observers.filter { $0.count <= count }.map(\.continuation)
        state.observers.removeAll { $0.count <= count }
        return (true, reached)
      }
      for observer in observers { observer.resume() }
      if !isHeld { continuation.resume() }
    }
    return try state.withLock { state in
      guard !state.isFailing else { throw RegistryError(.unavailable, "down") }
      return state.keys[id]
    }
  }

  func addAPIKey(_ key: StoredAPIKey) async throws { set(key) }
  func apiKeys(hub: HubName) async throws -> [StoredAPIKey] { state.withLock { Array($0.keys.values) } }
  func removeAPIKey(_ id: String, hub: HubName) async throws -> Bool {
    state.withLock { $0.keys.removeValue(forKey: id) != nil }
  }

  func markAPIKeyUsed(_ id: String, hub: HubName, day: UnixTime) async throws {
    try state.withLock { state in
      guard !state.isFailing else { throw RegistryError(.unavailable, "down") }
      state.marks += 1
      state.keys[id]?.lastUsedDay = day
    }
  }
}
