import FanfareCore
import Store
import Support
import Synchronization
import Testing

@testable import Registry

/// A scheduled send that cannot be decoded, for example one of another release, does not delay the others.
@Suite(.timeLimit(.minutes(1))) struct UnreadableSendTests {
  private let clock = ManualClock()

  private static let damage = PreparedStatement("UPDATE scheduled_sends SET record = ?1 WHERE id = ?2")

  @Test(arguments: RegistryEngine.available) func unreadableSendIsMarked(engine: RegistryEngine) async throws {
    try await engine.withRegistry { registry, _ in try await check(registry) }
  }

  private func check(_ store: RegistryDatabase) async throws {
    let now = clock.now()
    let sends = (0..<3).map { number in
      ScheduledSend(
        send: SendRequest(
          id: .random(), sender: "alice", acceptedAt: now + .seconds(number), audience: .user("bob"),
          content: Content(message: Message(body: "b")), timeToLive: 60),
        scheduledAt: now)
    }
    try await store.hold(sends, at: now)
    _ = try await store.write { try $0.run(Self.damage, [.bytes(Array("{}".utf8)), .id(sends[0].send.id)]) }
    let (later, named) = (now + .seconds(10), Named())
    let due = try await store.takeDue(2, for: .random(), until: later + .seconds(30), at: later) { named.append($1) }
    #expect(due == [sends[1]])
    #expect(named.ids == [sends[0].send.id])
    let rest = try await store.takeDue(2, for: .random(), until: later + .seconds(30), at: later) { named.append($1) }
    #expect(rest == [sends[2]] && named.ids.count == 1)
    #expect(try await store.nextDue() == later + .seconds(30), "the unreadable send is not due again")
    await expect(.unavailable) { try await store.scheduled(sends[0].send.id, hub: .default) }
  }

  /// Records the sends that were reported unreadable.
  private final class Named: Sendable {
    private let held = Mutex<[SendID]>([])
    var ids: [SendID] { held.withLock { $0 } }
    func append(_ id: SendID) { held.withLock { $0.append(id) } }
  }
}
