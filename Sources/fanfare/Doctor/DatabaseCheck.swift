import FanfareCore
import Ledger
import Logging
import Registry
import Roles
import Store

/// The PostgreSQL databases: reachable, schema, indexes, dead rows, size, clock.
struct DatabaseCheck {
  let settings: Settings
  let patience: Duration
  let logger: Logger

  private static let server = PreparedStatement(
    """
    SELECT pg_database_size(current_database()), (extract(epoch FROM clock_timestamp()) * 1000)::int8,
      current_setting('server_version'), current_setting('transaction_read_only')
    """)
  private static let indexes = PreparedStatement(
    """
    SELECT count(*)::int8 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE NOT indisvalid AND relnamespace = current_schema()::text::regnamespace
    """)
  private static let bloat = PreparedStatement(
    """
    SELECT relname::text, n_dead_tup::int8, n_live_tup::int8 FROM pg_stat_user_tables
    WHERE schemaname = current_schema() AND n_dead_tup > 100000 AND n_dead_tup > n_live_tup ORDER BY relname
    """)

  func findings() async -> [CheckResult] {
    var findings: [CheckResult] = []
    let words = ErrorWords(settings)
    let databases = [
      (
        "registry", settings.registry.database(role: "doctor", patience: .zero), RegistrySchema.migration,
        words.registry
      ),
      ("ledger", settings.ledger.database, LedgerTables.migration, words.ledger),
    ]
    for case (let area, let database?, let schema, let place) in databases {
      do { findings += try await check(database, schema, area, place) } catch {
        let text = error is PostgreSQLError ? "\(place): \(error)" : words.text(error)
        findings.append(
          .wrong(area, text, remedy: "check \(area).postgres.url, the password file, and that the server listens"))
      }
    }
    return findings
  }

  /// The findings about a reachable database.
  func check(
    _ database: PostgreSQLConfiguration, _ schema: SchemaMigration, _ area: String, _ place: String
  ) async throws -> [CheckResult] {
    var database = database
    database.waitLimit = patience
    database.statementTimeout = patience
    database.maximumConnections = 1
    let pool = try PostgreSQLPool(database, logger: logger)
    defer { pool.close() }
    let before = SystemWallClock().now()
    let found = try await pool.read { connection in
      let server = try connection.query(Self.server)
      let bloat = try connection.query(Self.bloat)
      return (
        bytes: try server.integer(0, 0), time: try server.integer(0, 1), version: try server.text(0, 2),
        isReadOnly: try server.text(0, 3) == "on", schema: try schema.state(on: connection),
        invalid: try connection.query(Self.indexes).integer(0, 0),
        bloated: try (0..<bloat.count).map { row in
          (table: try bloat.text(row, 0), dead: try bloat.integer(row, 1), live: try bloat.integer(row, 2))
        }
      )
    }
    let after = SystemWallClock().now()
    var findings = [
      CheckResult.ok(area, "\(place) answers: PostgreSQL \(found.version), \(found.bytes >> 20) MiB")
    ]
    if let version = found.schema.version, version < schema.steps.count {
      findings.append(
        .warning(
          area, "\(place) has version \(version) of the tables, and this release uses \(schema.steps.count)",
          remedy: "the role changes them when it starts"))
    } else if found.schema.version == nil {
      findings.append(.warning(area, "\(place) has no tables yet", remedy: "the role creates them when it starts"))
    }
    findings += found.schema.missingIndexes.map {
      .wrong(area, "an index is missing, so that queries read whole tables", remedy: $0)
    }
    if found.isReadOnly {
      findings.append(.wrong(area, "\(place) is read-only", remedy: "name the primary in \(area).postgres.url"))
    }
    if found.invalid > 0 {
      findings.append(
        .wrong(
          area, "\(found.invalid) indexes are invalid, so that queries read whole tables",
          remedy: "REINDEX DATABASE CONCURRENTLY"))
    }
    findings += found.bloated.map {
      .warning(
        area, "the table \($0.table) has \($0.dead) dead rows beside \($0.live) living ones",
        remedy: "VACUUM (ANALYZE) \($0.table), and look why autovacuum does not follow")
    }
    return findings + [clock(found.time, before, after, area)]
  }

  /// Compares the server's clock with this machine's.
  private func clock(_ server: Int64, _ before: UnixTime, _ after: UnixTime, _ area: String) -> CheckResult {
    let time = UnixTime(milliseconds: server)
    let difference = time < before ? before - time : (time > after ? time - after : .zero)
    return ClockCheck.finding("of the \(area)'s server", difference)
  }
}
