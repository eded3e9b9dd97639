import FanfareCore
import Foundation
import GRDB
import Store
import Support
import Synchronization
import Testing

@testable import Registry

/// A scheduled send that cannot be decoded, for example one of another release, does not delay the others.
@Suite(.timeLimit(.minutes(1))) struct UnreadableSendTests {
  private let clock = ManualClock()

  @Test func unreadableSendIsMarkedInSQLite() async throws {
    let temporary = try TemporaryRegistry()
    try await check(temporary.registry) { damaged in
      try await temporary.registry.writeFile { db in
        try db.execute(
          sql: "UPDATE scheduled_sends SET record = X'7B7D' WHERE id = ?", arguments: [Data(damaged.bytes)])
      }
    }
  }

  @Test(TestPostgreSQL.isAvailable) func unreadableSendIsMarkedInPostgreSQL() async throws {
    try await withPostgreSQLRegistry { registry, _ in
      try await check(registry) { damaged in
        _ = try await registry.writeDatabase { connection in
          try connection.execute("UPDATE scheduled_sends SET record = '{}' WHERE id = $1", [.id(damaged)]).affected
        }
      }
    }
  }

  private func check(_ store: any ScheduledSendStore, damage: (SendID) async throws -> Void) async throws {
    let now = clock.now()
    let sends = (0..<3).map { number in
      ScheduledSend(
        send: SendRequest(
          id: .random(), sender: "alice", acceptedAt: now + .seconds(number), audience: .user("bob"),
          content: Content(message: Message(body: "b")), timeToLive: 60),
        scheduledAt: now)
    }
    try await store.hold(sends, at: now)
    try await damage(sends[0].send.id)
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
