import Support
import Synchronization
import Testing

@testable import Store

/// A pool under concurrency, lost connections, read-only servers and timeouts.
@Suite(TestPostgreSQL.isAvailable, .timeLimit(.minutes(2))) struct PoolTests {
  private static let own = PreparedStatement("SELECT pg_backend_pid()")
  private static let end = PreparedStatement("SELECT pg_terminate_backend($1::integer)")

  @Test func poolNeverExceedsItsConnectionLimit() async throws {
    try await withPool {
      $0.maximumConnections = 3
    } _: { pool in
      let seen = try await withThrowingTaskGroup(of: Int64.self) { group in
        for _ in 0..<60 {
          group.addTask {
            try await pool.withConnection { connection in
              try connection.execute("SELECT pg_sleep(0.002)")
              return try connection.query(Self.own).integer(0, 0)
            }
          }
        }
        return try await group.reduce(into: Set<Int64>()) { $0.insert($1) }
      }
      #expect((1...3).contains(seen.count))
    }
  }

  @Test func callerIsRefusedWhileTooManyWait() async throws {
    try await withPool {
      ($0.maximumConnections, $0.maximumWaiting, $0.waitLimit) = (1, 1, .seconds(600))
    } _: { pool in
      let gate = Gate()
      async let holder: Void = pool.withConnection { _ in gate.hold() }
      await gate.held()
      await withTaskGroup(of: String.self) { group in
        for _ in 0..<2 { group.addTask { await outcome { try await pool.check() } } }
        let first = await group.next()
        #expect(first?.contains("too many callers wait") == true, "\(first ?? "")")
        gate.release()
        #expect(await group.next() == "done", "the other waits, for as long as it takes")
      }
      try await holder
    }
  }

  @Test func callerIsRefusedAfterTheWaitLimit() async throws {
    try await withPool {
      ($0.maximumConnections, $0.waitLimit) = (1, .milliseconds(100))
    } _: { pool in
      let gate = Gate()
      async let holder: Void = pool.withConnection { _ in gate.hold() }
      await gate.held()
      let refused = await outcome { try await pool.check() }
      #expect(refused.contains("no connection became free in time"), "\(refused)")
      gate.release()
      try await holder
    }
  }

  @Test func cancelledCallerIsNotServed() async throws {
    try await withPool { pool in
      await withTaskGroup(of: Void.self) { group in
        group.cancelAll()
        group.addTask { await #expect(throws: CancellationError.self) { try await pool.check() } }
      }
      try await pool.check()
    }
  }

  @Test func transactionIsCommittedOnceOrRolledBack() async throws {
    try await withPool { pool in
      try await pool.withConnection { try $0.executeScript("CREATE TABLE done (n integer)") }
      struct Refusal: Error {}
      await #expect(throws: Refusal.self) {
        try await pool.transaction { connection in
          try connection.execute("INSERT INTO done VALUES (1)")
          throw Refusal()
        }
      }
      let attempts = Atomic(0)
      let result = try await pool.transaction { connection in
        try connection.execute("INSERT INTO done VALUES (2)")
        guard attempts.wrappingAdd(1, ordering: .relaxed).newValue == 3 else { throw StoreError.overtaken }
        return "done"
      }
      #expect(result == "done")
      let rows = try await pool.read { try $0.execute("SELECT array_agg(n) FROM done").integers(0, 0) }
      #expect(rows == [2])
      // Not retried for ever.
      await #expect(throws: StoreError.overtaken) { try await pool.transaction { _ in throw StoreError.overtaken } }
    }
  }

  @Test func collidingTransactionsAreAllCommitted() async throws {
    try await withPool { pool in
      try await pool.withConnection {
        try $0.executeScript("CREATE TABLE counter (n integer); INSERT INTO counter VALUES (0)")
      }
      try await withThrowingTaskGroup { group in
        for _ in 0..<20 {
          group.addTask {
            try await pool.transaction { connection in
              try connection.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
              let number = try connection.execute("SELECT n FROM counter").integer(0, 0)
              try connection.execute("UPDATE counter SET n = \(number + 1)")
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await pool.read { try $0.execute("SELECT n FROM counter").integer(0, 0) } == 20)
    }
  }

  @Test func lostConnectionIsReplaced() async throws {
    try await withPool {
      $0.maximumConnections = 1
    } _: { pool in
      try await withPool {
        $0.maximumConnections = 1
      } _: { killer in
        func kill(_ pid: Int64) async throws {
          _ = try await killer.withConnection { try $0.query(Self.end, [.int4(Int32(pid))]).affected }
          // The connection is closed once its server process has ended.
          let isGone = PreparedStatement("SELECT count(*) FROM pg_stat_activity WHERE pid = $1")
          while try await killer.read({ try $0.query(isGone, [.int4(Int32(pid))]).integer(0, 0) }) > 0 {}
        }
        let first = try await pool.read { try $0.query(Self.own).integer(0, 0) }
        try await kill(first)
        let second = try await pool.withConnection { try $0.query(Self.own).integer(0, 0) }
        #expect(second != first, "an idle connection that died is replaced without an error")

        let attempts = Atomic(0)
        let third = try await pool.transaction { connection in
          let own = try connection.query(Self.own).integer(0, 0)
          if attempts.wrappingAdd(1, ordering: .relaxed).newValue == 1 {
            try connection.query(Self.end, [.int4(Int32(own))])
            try connection.query(Self.own)
          }
          return own
        }
        #expect(
          third != second && attempts.load(ordering: .relaxed) == 2, "nothing was committed, so it was retried")

        let error = await #expect(throws: PostgreSQLError.self) {
          try await pool.withConnection { connection in
            let own = try connection.query(Self.own).integer(0, 0)
            try connection.query(Self.end, [.int4(Int32(own))])
          }
        }
        #expect(
          error?.code == .unavailable && error?.isConnectionLost == true,
          "the outcome is unknown, so it was not retried")
        try await pool.check()
      }
    }
  }

  @Test func readOnlySessionIsReplaced() async throws {
    try await withPool {
      $0.maximumConnections = 1
      $0.replacementInterval = .zero
    } _: { pool in
      let demotion = "SET default_transaction_read_only = on"
      try await pool.withConnection { try $0.executeScript("CREATE TABLE written (n integer); \(demotion)") }
      _ = try await pool.transaction { try $0.execute("INSERT INTO written VALUES (1)").affected }

      try await pool.withConnection { try $0.executeScript(demotion) }
      let error = await #expect(throws: PostgreSQLError.self) {
        try await pool.withConnection { try $0.copyIn("COPY written FROM STDIN (FORMAT binary)") { _ in } }
      }
      #expect(error?.code == .unavailable && error?.sqlState == "25006")
      _ = try await pool.withConnection { try $0.execute("INSERT INTO written VALUES (2)").affected }
    }
  }

  @Test func readOnlyServerIsNotReconnectedWithinTheInterval() async throws {
    try await withPool {
      $0.maximumConnections = 1
      $0.replacementInterval = .seconds(600)
      $0.settings["default_transaction_read_only"] = "on"
    } _: { pool in
      var sessions: Set<Int64> = []
      for _ in 0..<3 {
        sessions.insert(try await pool.read { try $0.execute("SELECT pg_backend_pid()").integer(0, 0) })
        let error = await #expect(throws: PostgreSQLError.self) {
          try await pool.transaction { try $0.executeScript("CREATE TABLE t ()") }
        }
        #expect(error?.sqlState == "25006")
      }
      #expect(sessions.count == 1)
    }
  }

  @Test func targetSessionAttributesOfTheConnectionStringApply() async throws {
    let log = LogRecorder()
    try await TestPostgreSQL.withSchema { configuration in
      var configuration = configuration
      configuration.settings["default_transaction_read_only"] = "on"
      let isURI = configuration.connection.contains("://")
      let separator = isURI ? configuration.connection.contains("?") ? "&" : "?" : " "
      configuration.connection += separator + "target_session_attrs=read-write"
      let pool = try PostgreSQLPool(configuration, logger: log.logger)
      defer { pool.close() }
      let error = await #expect(throws: PostgreSQLError.self) { try await pool.check() }
      #expect(error?.code == .unavailable && error?.hint == "the server is read-only")
    }
    #expect(log.count(of: "Cannot connect to PostgreSQL") == 1)
    #expect(try PostgreSQLConfiguration(connection: "").parameters()["target_session_attrs"] == "primary")
    let parameters = try PostgreSQLConfiguration(connection: "target_session_attrs=any").parameters()
    #expect(parameters["target_session_attrs"] == "any", "the connection string takes precedence")
  }

  @Test func slowStatementTimesOut() async throws {
    try await withPool {
      // The check below must end within it, too.
      $0.statementTimeout = .seconds(2)
    } _: { pool in
      let error = await #expect(throws: PostgreSQLError.self) {
        try await pool.read { try $0.execute("SELECT pg_sleep(100)").affected }
      }
      #expect(error?.code == .unavailable && error?.sqlState == "57014")
      try await pool.check()
    }
  }

  @Test func unreachableServerIsUnavailable() async throws {
    let log = LogRecorder()
    var configuration = PostgreSQLConfiguration(connection: "host=/nonexistent password=open-sesame")
    configuration.waitLimit = .milliseconds(200)
    let pool = try PostgreSQLPool(configuration, logger: log.logger)
    for _ in 0..<3 {
      let error = await #expect(throws: PostgreSQLError.self) { try await pool.check() }
      #expect(error?.code == .unavailable)
    }
    #expect(log.count(of: "Cannot connect to PostgreSQL") > 0)
    #expect(!log.text.contains("open-sesame"))
    pool.close()
    await #expect(throws: PostgreSQLError.self) { try await pool.check() }
  }

  @Test(arguments: ["nonsense", "postgresql://user:open-sesame@[::1/x", "host=a open-sesame=b", "user=\0"])
  func invalidConnectionStringIsRefusedWithoutRepeatingIt(text: String) {
    let error = #expect(throws: PostgreSQLError.self) {
      try PostgreSQLPool(PostgreSQLConfiguration(connection: text), logger: TestPostgreSQL.quietLogger)
    }
    #expect(error?.code == .configuration)
    #expect(error?.description.contains("sesame") == false)
    #expect(!"\(PostgreSQLConfiguration(connection: text))".contains("sesame"))
  }

  @Test func sessionHasTheConfiguredSettings() async throws {
    try await withPool {
      $0.statementTimeout = .seconds(7)
    } _: { pool in
      let rows = try await pool.read { connection in
        try ["statement_timeout", "idle_in_transaction_session_timeout", "client_encoding"].map {
          try connection.execute("SHOW \($0)").text(0, 0)
        }
      }
      #expect(rows == ["7s", "1min", "UTF8"])
    }
  }

  @Test func idleTransactionIsEndedByTheServer() async throws {
    try await withPool { pool in
      try await pool.withConnection {
        try $0.executeScript("CREATE TABLE locked (n integer); INSERT INTO locked VALUES (1)")
      }
      let gate = Gate()
      let attempts = Atomic(0)
      async let idle: Void = pool.transaction { connection in
        if attempts.wrappingAdd(1, ordering: .relaxed).newValue == 1 {
          try connection.execute("SELECT n FROM locked FOR UPDATE")
          try connection.execute("SET LOCAL idle_in_transaction_session_timeout = 1")
          gate.hold()
        }
        try connection.execute("UPDATE locked SET n = n + 1")
      }
      await gate.held()
      // Gets the row lock as soon as the server has ended the idle session.
      _ = try await pool.transaction { try $0.execute("UPDATE locked SET n = n * 10").affected }
      gate.release()
      try await idle
      #expect(attempts.load(ordering: .relaxed) == 2, "nothing was committed, so it was retried")
      #expect(try await pool.read { try $0.execute("SELECT n FROM locked").integer(0, 0) } == 11)
    }
  }

  private func outcome(_ body: () async throws -> Void) async -> String {
    do {
      try await body()
      return "done"
    } catch { return "\(error)" }
  }

  private func withPool(
    configure: (inout PostgreSQLConfiguration) -> Void = { _ in }, _ body: (PostgreSQLPool) async throws -> Void
  ) async throws {
    try await TestPostgreSQL.withSchema { configuration in
      var configuration = configuration
      configure(&configuration)
      let pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      try await body(pool)
    }
  }
}

/// Blocks a connection's thread until the test releases it.
private final class Gate: Sendable {
  private let (holding, held) = AsyncStream.makeStream(of: Void.self)
  private let released = Mutex(false)

  func hold() {
    held.yield()
    while !released.withLock({ $0 }) {}
  }

  func held() async { for await _ in holding { return } }

  func release() { released.withLock { $0 = true } }
}
