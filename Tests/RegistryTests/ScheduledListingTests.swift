import FanfareCore
import Foundation
import Store
import Support
import Testing

@testable import Registry

/// The cost of a page of waiting sends depends on the page only.
@Suite(.timeLimit(.minutes(1))) struct ScheduledListingTests {
  /// Every kind of query, from the middle of the waiting sends on.
  private static let queries: [SendQuery] = {
    let place = SendQuery.Position(acceptedAt: UnixTime(milliseconds: 5_000), send: SendID(high: 1, low: 1))
    return [(nil, nil), ("ann", nil), ("ben", nil), (nil, "ben"), ("ann", "ben"), ("ben", "ben")].map { sender, user in
      SendQuery(hub: .default, sender: sender, user: user, after: place, limit: 10)
    }
  }()

  /// The indexes from which each query is read.
  private static let indexes = [
    ["waiting (hub=? AND "], ["waiting_by_sender (hub=? AND sender=? AND "],
    ["waiting_by_sender (hub=? AND sender=? AND "],
    ["waiting_by_sender (hub=? AND sender=? AND ", "waiting_by_audience (hub=? AND audience=? AND "],
    ["waiting_by_audience (hub=? AND audience=? AND "], ["waiting_by_sender (hub=? AND sender=? AND "],
  ]

  @Test(arguments: zip(queries, indexes)) func pageIsReadFromAnIndex(query: SendQuery, indexes: [String]) async throws {
    let temporary = try TemporaryRegistry()
    let (statement, values) = RegistryDatabase.listing(query)
    let explain = PreparedStatement(sqlite: "EXPLAIN QUERY PLAN " + statement.sqlite, postgreSQL: "")
    let plan = try await temporary.registry.read { try $0.all(explain, values) { try $0.text(3) } }
    let expected = indexes.map {
      "SEARCH scheduled_sends USING INDEX scheduled_send_\($0)scheduled_at>? AND (scheduled_at,id)<(?,?))"
    }
    #expect(plan.filter { $0.contains("scheduled_sends") } == expected, "\(plan)")
    // The two branches of a UNION are sorted together.
    #expect(indexes.count > 1 || plan.count == 1, "\(plan)")
  }

  /// More sends were fired than wait, the newest ones included. The plan shows the rows that the server read.
  @Test(TestPostgreSQL.isAvailable) func pageReadsOnlyItsRowsInPostgreSQL() async throws {
    try await withPostgreSQLRegistry { registry, _ in
      let plans = try await registry.read { session in
        try session.script(
          """
          INSERT INTO scheduled_sends (hub, id, sender, audience, record, bytes, scheduled_at, state, ready_at)
          SELECT 'default', gen_random_uuid(), CASE WHEN n % 1000 = 0 THEN 'ben' ELSE 'ann' END,
            CASE WHEN n % 1000 = 2 THEN 'username:ben' ELSE '*' END, decode(repeat('7b', 400), 'hex'), 400, n,
            CASE WHEN n % 2 = 0 AND n < 8000 THEN 'held' ELSE 'fired' END, n
          FROM generate_series(1, 10000) AS n
          """)
        try session.script("ANALYZE scheduled_sends")
        return try Self.queries.map { query in
          let (statement, values) = RegistryDatabase.listing(query)
          let explain = PreparedStatement("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) \(statement.sql)")
          return try session.all(explain, values) { try $0.text(0) }
        }
      }
      for plan in plans {
        // Lines have `(actual rows=10 loops=1)` and, for rows that were read in vain, `Rows Removed by Filter: 4990`.
        let counts = plan.flatMap {
          $0.matches(of: /(?:actual rows=|Removed by Filter: )(\d+)/).compactMap { Int($0.1) }
        }
        #expect(!counts.isEmpty && counts.allSatisfy { $0 <= 20 }, "\(plan.joined(separator: "\n"))")
      }
    }
  }
}
