import Foundation
import PrivatePostgreSQL
package import Store

/// Dumps a schema and its rows as SQL, and loads them. The SQL names no schema: `search_path` selects it.
package enum GoldenDump {
  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The output of `pg_dump` for the schema that `search_path` names, without comments and session settings.
  package static func sql(of database: PostgreSQLConfiguration) throws -> String {
    guard let schema = database.settings["search_path"], let programs = PrivateServer.programs else {
      throw Failure(description: "pg_dump is not installed, or no schema is named")
    }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "\(programs)/pg_dump")
    process.arguments = [
      "--schema=\(schema)", "--no-owner", "--no-privileges", "--inserts", "--dbname=\(database.connection)",
    ]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failure(description: "pg_dump failed") }
    // Only some versions know `\restrict` and some of the settings.
    let noise = ["--", "SET ", "SELECT pg_catalog.set_config", "CREATE SCHEMA", "\\"]
    return text.replacing("\(schema).", with: "").split(separator: "\n")
      .filter { line in !noise.contains { line.hasPrefix($0) } }.joined(separator: "\n") + "\n"
  }

  /// Runs a dump in the schema that `search_path` names.
  package static func load(_ sql: String, into database: PostgreSQLConfiguration) async throws {
    let pool = try PostgreSQLPool(database, logger: TestPostgreSQL.quietLogger)
    defer { pool.close() }
    try await pool.withConnection { try $0.executeScript(sql) }
  }

  /// The schema's columns, constraints, indexes, partitions and versions, one a line.
  package static func schema(of database: PostgreSQLConfiguration) async throws -> [String] {
    let pool = try PostgreSQLPool(database, logger: TestPostgreSQL.quietLogger)
    defer { pool.close() }
    return try await pool.withConnection { connection in
      // All branches have the same column types, so that PostgreSQL pushes the condition down into them: for an index
      // of another test's schema, `pg_get_indexdef` fails with XX000 if the schema is dropped meanwhile.
      let rows = try connection.execute(
        """
        SELECT replace(line, current_schema() || '.', '') FROM (
          SELECT relnamespace,
              concat_ws(' ', relkind, relname, pg_get_expr(relpartbound, oid), reloptions::text) AS line
            FROM pg_class
          UNION ALL
          SELECT relnamespace, concat_ws(' ', 'column', relname, attname, format_type(atttypid, atttypmod), attnotnull,
              pg_get_expr(adbin, adrelid), (SELECT collname FROM pg_collation AS l WHERE l.oid = attcollation))
            FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped
            LEFT JOIN pg_attrdef AS d ON (adrelid, adnum) = (c.oid, attnum) WHERE relkind IN ('r', 'p')
          UNION ALL
          SELECT relnamespace, pg_get_indexdef(c.oid) FROM pg_class AS c WHERE relkind IN ('i', 'I')
          UNION ALL
          SELECT connamespace, concat_ws(' ', 'constraint', conname, conrelid::regclass, pg_get_constraintdef(oid))
            FROM pg_constraint
          UNION ALL
          SELECT current_schema()::regnamespace::oid, concat_ws(' ', 'version of', component, version) FROM fanfare_versions
        ) AS things WHERE relnamespace = current_schema()::regnamespace ORDER BY 1
        """)
      return try (0..<rows.count).map { try rows.text($0, 0) }
    }
  }
}
