import Foundation
import Store
import Support
import Testing

/// Statements, copies and errors over one connection to a real server.
@Suite(TestPostgreSQL.isAvailable, .timeLimit(.minutes(2))) struct ConnectionTests {
  private static let echo = PreparedStatement(
    "SELECT $1::text, $2::bytea, $3::boolean, $4::smallint, $5::integer, $6::bigint, $7::uuid")

  @Test func parametersRoundTrip() async throws {
    try await withPool { connection in
      let high: UInt64 = 0x0123_4567_89AB_CDEF
      let parameters: [Parameter] = [
        .text("ren\u{E9} 🦄 ' \" \\"), .bytea([0, 1, 255]), .bool(true), .int2(-2), .int4(.min), .int8(.max),
        .uuid(high: high, low: .max),
      ]
      // The second time the statement is already prepared.
      for _ in 0..<2 {
        let rows = try connection.query(Self.echo, parameters)
        #expect(rows.count == 1)
        #expect(try rows.text(0, 0) == "ren\u{E9} 🦄 ' \" \\")
        #expect(try rows.raw(0, 1) == [0, 1, 255])
        #expect(try rows.bool(0, 2))
        #expect(try rows.integer(0, 3) == -2)
        #expect(try rows.integer(0, 4) == Int64(Int32.min))
        #expect(try rows.integer(0, 5) == .max)
        #expect(try rows.uuid(0, 6) == (high, .max))
      }
      let nothing = try connection.query(
        Self.echo,
        [.text(nil), .bytea(nil), .bool(false), .int2(nil), .int4(nil), .int8(nil), .null(.uuid)])
      #expect([0, 1, 3, 4, 5, 6].allSatisfy { nothing.isNull(0, $0) })
      #expect(try nothing.optionalText(0, 0) == nil && nothing.optionalInteger(0, 5) == nil)
      #expect(try connection.query(Self.echo, [.text(""), .bytea([])] + parameters.dropFirst(2)).raw(0, 1) == [])
    }
  }

  private static let unnest = PreparedStatement(
    """
    SELECT * FROM unnest($1::text[], $2::bytea[], $3::bigint[], $4::uuid[], $5::smallint[], $6::integer[], $7::boolean[])
      WITH ORDINALITY AS t (a, b, c, d, e, f, g, n) ORDER BY n
    """)

  @Test func arrayParametersRoundTrip() async throws {
    try await withPool { connection in
      let rows = try connection.query(
        Self.unnest,
        [
          .texts(["a", nil, ""]), .byteas([[1], [], nil]), .int8s([nil, -1, 3]),
          .uuids([(high: 1, low: 2), (high: 3, low: 4), (high: 5, low: 6)]),
          .int2s([1, nil, 3]), .int4s([7, 8, nil]), .bools([true, false, true]),
        ])
      #expect(rows.count == 3)
      #expect(try (0..<3).map { try rows.optionalText($0, 0) } == ["a", nil, ""])
      #expect(try rows.raw(1, 1) == [] && rows.isNull(2, 1))
      #expect(try (0..<3).map { try rows.optionalInteger($0, 2) } == [nil, -1, 3])
      #expect(try rows.uuid(2, 3) == (5, 6))
      #expect(try rows.optionalInteger(1, 4) == nil && rows.integer(0, 5) == 7 && !rows.bool(1, 6))
      let none = try connection.query(
        Self.unnest, [.texts([]), .byteas([]), .int8s([]), .uuids([]), .int2s([]), .int4s([]), .bools([])])
      #expect(none.count == 0)
      let arrays = try connection.execute(
        "SELECT ARRAY['x','','yy']::text[], ARRAY[1,-2]::bigint[], ARRAY[-3]::smallint[], '{}'::text[]")
      #expect(try arrays.texts(0, 0) == ["x", "", "yy"])
      #expect(try arrays.integers(0, 1) == [1, -2] && arrays.integers(0, 2) == [-3])
      #expect(try arrays.texts(0, 3) == [])
    }
  }

  @Test func copyWritesAndReadsRows() async throws {
    try await withPool { connection in
      try connection.execute(
        "CREATE TABLE copied (id uuid, name text, at bigint, kind smallint, data bytea, seen boolean)")
      let count = try connection.copyIn("COPY copied FROM STDIN (FORMAT binary)") { rows in
        for number in 0..<20_000 {
          try rows.row(columns: 6)
          rows.uuid(high: UInt64(number), low: 7)
          rows.text("name \(number)")
          rows.int8(Int64(number) * 1_000_000_007)
          rows.int2(Int16(number % 3))
          rows.bytea(number.isMultiple(of: 2) ? nil : [UInt8(truncatingIfNeeded: number)])
          rows.bool(true)
        }
      }
      #expect(count == 20_000)
      #expect(try connection.execute("SELECT sum(at)::bigint FROM copied").integer(0, 0) == 1_000_000_007 * 199_990_000)
      var lines = 0
      var text: [UInt8] = []
      try connection.copyOut("COPY (SELECT name, kind FROM copied ORDER BY id) TO STDOUT") { line in
        lines += 1
        if lines <= 2 { text += line }
      }
      #expect(lines == 20_000)
      #expect(String(decoding: text, as: UTF8.self) == "name 0\t0\nname 1\t1\n")
      struct Enough: Error {}
      #expect(throws: Enough.self) {
        try connection.copyIn("COPY copied FROM STDIN (FORMAT binary)") { rows in
          try rows.row(columns: 6)
          throw Enough()
        }
      }
      #expect(
        try connection.execute("SELECT count(*) FROM copied").integer(0, 0) == 20_000,
        "the copy was abandoned and the connection is still usable")
      let refusal = #expect(throws: PostgreSQLError.self) {
        try connection.copyIn("COPY nothing FROM STDIN (FORMAT binary)") { _ in }
      }
      #expect(refusal?.sqlState == "42P01")
      #expect(try connection.execute("SELECT 1").integer(0, 0) == 1)
    }
  }

  @Test func errorsHaveACodeAndRepeatNoValue() async throws {
    let mark = "fade0fface"
    try await withPool { connection in
      try connection.executeScript(
        "CREATE TABLE single (name text PRIMARY KEY, number integer); INSERT INTO single VALUES ('\(mark)', 1)")
      func error(_ sql: String) -> PostgreSQLError? {
        #expect(throws: PostgreSQLError.self) { try connection.execute(sql) }
      }
      let cases: [(sql: String, code: PostgreSQLError.Code, state: String)] = [
        ("INSERT INTO single VALUES ('\(mark)', 2)", .conflict, "23505"),
        ("SELECT '\(mark)'::integer", .programming, "22P02"),
        ("SELECT \(mark) FROM single", .programming, "42703"), ("SELEKT '\(mark)'", .programming, "42601"),
      ]
      for (sql, code, state) in cases {
        let error = error(sql)
        #expect(error?.code == code && error?.sqlState == state)
        for text in [error?.description, error.map { String(reflecting: $0) }] {
          #expect(text?.contains(mark) == false)
        }
      }
      #expect(error("INSERT INTO single VALUES ('\(mark)')")?.constraint == "single_pkey")
      let mismatch = #expect(throws: PostgreSQLError.self) {
        try connection.execute("SELECT 'abc'::text").integer(0, 0)
      }
      #expect(mismatch?.code == .programming)
      #expect(throws: PostgreSQLError.self) { try connection.execute("SELECT 1").integer(1, 0) }
      #expect(throws: PostgreSQLError.self) { try connection.execute("COPY single TO STDOUT") }
    }
  }

  private func withPool(_ body: @escaping @Sendable (PostgreSQLConnection) throws -> Void) async throws {
    try await TestPostgreSQL.withSchema { configuration in
      let pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      try await pool.withConnection(body)
    }
  }
}
