/// Translates statements that are written once into the words of each engine.
///
/// A statement has parameters `?1`, `?2` …, and PostgreSQL's words where the engines differ: `FOR UPDATE`, `FOR UPDATE
/// SKIP LOCKED` (SQLite's one writer locks everything), `greatest(…)`, and `= ANY (?n)` with a list of elements, for
/// each of which SQLite runs the statement. The tables have PostgreSQL's types and collations, and SQLite's `WITHOUT
/// ROWID`. Upserts, `RETURNING` and row values are the same in SQLite from 3.35 on; the conflict target must be named.
enum Dialect {
  /// The statement as SQLite reads it.
  static func sqlite(_ sql: String) -> String {
    sql.replacing(" FOR UPDATE SKIP LOCKED", with: "").replacing(" FOR UPDATE", with: "")
      .replacing("\nFOR UPDATE", with: "").replacing("greatest(", with: "max(")
      .replacing(/[ ]= ANY \((\?[0-9]+)\)/) { " = \($0.1)" }
  }

  /// The statement as PostgreSQL reads it.
  static func postgreSQL(_ sql: String) -> String { sql.replacing(/\?([0-9]+)/) { "$\($0.1)" } }

  /// The definition of tables as SQLite reads it.
  static func sqlite(tables sql: String) -> String {
    sql.replacing(" COLLATE \"C\"", with: "").replacing("text[]", with: "text")
      .replacing(/\b(uuid|bytea)\b/, with: "blob").replacing(/\b(bigint|smallint|boolean)\b/, with: "integer")
  }

  /// The definition of tables as PostgreSQL reads it.
  static func postgreSQL(tables sql: String) -> String { sql.replacing(" WITHOUT ROWID", with: "") }
}
