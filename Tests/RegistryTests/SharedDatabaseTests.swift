import FanfareCore
import Foundation
import PrivatePostgreSQL
import Store
import Support
import Testing

@testable import Registry

/// What only PostgreSQL has: clients at the same moment, and plans.
@Suite(TestPostgreSQL.isAvailable, .timeLimit(.minutes(2))) struct SharedDatabaseTests {
  private let clock = ManualClock()

  @Test func templateWaitsForAClaimOfItsHandle() async throws {
    try await withPostgreSQLRegistry { registry, configuration in
      let former = try await registry.complete(template("goal", .random(), "alice", "h"), at: clock.now())
      let pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      // What a registration of the handle without a template does first.
      let lock = try await HeldLock(
        """
        INSERT INTO handles (hub, handle, registration, registered_at)
        VALUES ('default', 'h', '\(RegistrationID.random())', 0)
        """, in: pool, last: ["DELETE FROM handles WHERE handle = 'h'"])
      async let taken = registry.complete(template("goal", .random(), "bob", "h"), at: clock.now())
      defer { lock.allowRelease() }
      try await lock.waitUntilAwaited()
      try await lock.release()
      let id = try await taken.id
      #expect(try await registry.registration(former.id, hub: .default) == nil)
      #expect(try await registry.list(.everyone, hub: .default, of: .whole, limit: 9).registrations.map(\.id) == [id])
    }
  }

  @Test func concurrentUsersOfADeviceLeaveItToOne() async throws {
    try await withPostgreSQLRegistry { one, configuration in
      let stores = [one, try await RegistryDatabase(configuration, logger: TestPostgreSQL.quietLogger)]
      for round in 0..<8 {
        let handle = "h\(round)"
        _ = try await one.complete(template("a", .random(), "carol", handle), at: clock.now())
        try await withThrowingTaskGroup { group in
          for (number, user) in ["alice", "bob"].enumerated() {
            let native = DeviceRequest(
              id: .random(), hub: .default, user: user, platform: .fcm, handle: handle, tags: [], isTrusted: true)
            for request in [native] + ["a", "b"].map({ template($0, .random(), user, handle) }) {
              group.addTask { _ = try await stores[number].complete(request, at: clock.now()) }
            }
          }
          try await group.waitForAll()
        }
        let rows = try await one.registrations(ofHandle: handle)
        #expect(!rows.isEmpty && Set(rows.map(\.user)).count == 1, "\(rows.map(\.user))")
        #expect(Set(rows.map(\.address)).count == rows.count)
        let held = try await one.readDatabase { connection in
          try connection.execute("SELECT count(*) FROM handles WHERE handle LIKE '\(handle)%'").integer(0, 0)
        }
        #expect(held == Int64(rows.count), "no claim is left")
      }
      stores[1].close()
    }
  }

  /// A request of a trusted caller for a template.
  private func template(_ name: String, _ id: RegistrationID, _ user: String, _ handle: String) -> DeviceRequest {
    let template = DeviceTemplate(name: name, body: #"{"data":{"t":"$(text)"}}"#)
    return DeviceRequest(
      id: id, hub: .default, user: user, platform: .fcm, handle: handle, tags: [],
      profile: DeviceProfile(template: template), isTrusted: true)
  }

  @Test func installationRegisteredDuringAnImportIsKept() async throws {
    try await withPostgreSQLRegistry { registry, configuration in
      // The handle is stored, so the batch reads the rows before it writes.
      let id = try await registry.issue(hub: .default, handle: "01", at: clock.now())
      _ = try await registry.complete(application(id, "alice", "01"), at: clock.now())
      let lines = try [#""handle":"01""#, #""handle":"09","installation":"i-1""#].enumerated().map { number, members in
        let text = #"{"user":"alice","platform":"apns","registeredAt":"\#(clock.now() + .seconds(-90))",\#(members)}"#
        return try RegistrationLine(Array(text.utf8)[...], number: number + 1, hub: .default, at: clock.now())
      }
      let batch = ImportBatch(hub: .default, file: nil, bytes: 0..<1, lines: lines, counts: ImportCounts())
      // In between it reads the tombstones, which registering does not.
      let pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      let lock = try await HeldLock("LOCK TABLE tombstones", in: pool)
      async let outcome = registry.take(batch, at: clock.now())
      defer { lock.allowRelease() }
      try await lock.waitUntilAwaited()
      let installation = DeviceRequest(
        installation: "i-1", hub: .default, user: "alice", platform: .apns, handle: "0a")
      let registration = try await registry.install(installation, at: clock.now())
      try await lock.release()
      let counts = try await outcome.counts
      #expect((counts.imported, counts.replaced, counts.outdated) == (0, 0, 2))
      #expect(try await registry.registration(ofInstallation: "i-1", hub: .default) == registration)
      let devices = try await registry.resolve([query(.user("alice"))])[0]
      #expect(Set(devices.map(\.registration)) == [id, registration.id])
    }
  }

  @Test func registrationThatChangesItsUserIsNotListed() async throws {
    try await withPostgreSQLRegistry { registry, configuration in
      _ = try await registry.install(
        DeviceRequest(installation: "i-1", hub: .default, user: "alice", platform: .apns, handle: "01"),
        at: clock.now()
      )
      let pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      // Each call reads the id from another table first, and then waits for the registration.
      let lock = try await HeldLock(
        "LOCK TABLE registrations", in: pool,
        last: ["UPDATE registrations SET username = 'bob', handle = '02', installation = NULL"])
      async let listed = registry.list(.user("alice"), hub: .default, of: .whole, limit: 10)
      async let installed = registry.registration(ofInstallation: "i-1", hub: .default)
      async let holding = registry.page(
        query(.device(.apns, handle: "01")), of: .whole, createdBefore: clock.now() + .seconds(1), limit: 10)
      defer { lock.allowRelease() }
      try await lock.waitUntilAwaited(by: 3)
      try await lock.release()
      #expect(try await listed.registrations == [])
      #expect(try await installed == nil)
      #expect(try await holding.targets.isEmpty)
    }
  }

  @Test func lostConnectionDuringCommitIsAnUnknownOutcome() async throws {
    try await withPostgreSQLRegistry { registry, _ in
      let now = clock.now()
      let held = ScheduledSend(
        send: SendRequest(
          id: .random(), sender: "alice", acceptedAt: now, audience: .user("bob"),
          content: Content(message: Message(body: "b")),
          timeToLive: 60),
        scheduledAt: now)
      // The session ends during the commit, so the caller cannot know the outcome.
      try await registry.readDatabase { connection in
        try connection.executeScript(
          """
          CREATE FUNCTION vanish() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
          CREATE CONSTRAINT TRIGGER vanishing AFTER INSERT ON scheduled_sends DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION vanish();
          """)
      }
      let unknown = await #expect(throws: RegistryError.self) { try await registry.hold([held], at: now) }
      #expect(unknown?.code == .unavailable && unknown?.isOutcomeUnknown == true)
      registry.close()
      let refused = await #expect(throws: RegistryError.self) { try await registry.hold([held], at: now) }
      #expect(refused?.code == .unavailable && refused?.isOutcomeUnknown == false)
    }
  }

  @Test func weightsAreEstimatedInOneStatement() async throws {
    try await withPostgreSQLRegistry { registry, _ in
      let weights = try await registry.readDatabase { connection in
        try connection.execute(
          """
          INSERT INTO tags (hub, tag, registration, platform, handle, registered_at, created_at)
          SELECT 'default', CASE WHEN n <= 3000 THEN 'many' ELSE 'few' END, gen_random_uuid(), 1, 'h' || n, 0, 0
          FROM generate_series(1, 3002) AS n
          """)
        return try PostgreSQLAudienceTable(connection: connection, hub: .default).weights(of: [
          "few", "a\nb", "many", "none",
        ])
      }
      #expect(weights[0] == 2 && weights[1] == 0 && weights[3] == 0)
      #expect((2000...4500).contains(weights[2]))
    }
  }

  @Test func pageOfManyTagsMergesItsRanges() async throws {
    try await withPostgreSQLRegistry { registry, _ in
      let (rows, plan) = try await registry.readDatabase { connection in
        // Each registration has two of the tags.
        try connection.execute(
          """
          INSERT INTO tags (hub, tag, registration, platform, handle, registered_at, created_at)
          SELECT 'default', 't' || (n + more) % 64, lpad(to_hex(n), 32, '0')::uuid, 1, 'h' || n, 0, 0
          FROM generate_series(0, 6399) AS n, generate_series(0, 1) AS more
          """)
        let statement = PostgreSQLAudienceTable.pageStatement(tagCount: 64)
        let whole = RegistrationSlice.whole
        let parameters: [Parameter] =
          [.text("default"), .id(whole.first), .id(whole.last), .int8(50)] + (0..<64).map { .text("t\($0)") }
        let rows = try connection.execute(statement, parameters)
        let ids = try (0..<rows.count).map { try rows.uuid($0, 0).low }
        let plan = try connection.execute("EXPLAIN \(statement)", parameters)
        return (ids, try (0..<plan.count).map { try plan.text($0, 0) })
      }
      #expect(rows == Array(0..<50))
      #expect(plan.contains { $0.contains("Merge Append") }, "\(plan)")
    }
  }

  @Test func lookUpNeverScans() async throws {
    try await withPostgreSQLRegistry { registry, _ in
      let plan = try await registry.readDatabase { connection in
        // The planner scans small tables unless that is disabled; then it only scans where no index fits.
        let statement = PostgreSQLAudienceLookup.statement.sql
        try connection.executeScript(
          "SET enable_seqscan = off; PREPARE look (text, text[], text[], uuid[], bigint) AS \(statement)")
        let rows = try connection.execute("EXPLAIN EXECUTE look ('default', '{username:alice}', '{h1}', '{}', 1001)")
        return try (0..<rows.count).map { try rows.text($0, 0) }
      }
      #expect(!plan.contains { $0.contains("Seq Scan") }, "\(plan)")
      #expect(plan.contains { $0.contains("Index Cond") && $0.contains("tag = ANY") }, "\(plan)")
      #expect(plan.contains { $0.contains("Index Cond") && $0.contains("handle = ANY") }, "\(plan)")
    }
  }
}

/// A database that is started after its clients.
@Suite(.enabled(if: PrivateServer.programs != nil, "PostgreSQL is not installed"), .timeLimit(.minutes(2)))
struct LateDatabaseTests {
  @Test func lateDatabaseIsUsedOnceItIsThere() async throws {
    let port = try await PrivateServer.unusedPort()
    let configuration = PostgreSQLConfiguration(connection: "host=127.0.0.1 port=\(port) user=fanfare dbname=postgres")
    await #expect(throws: PostgreSQLError.self) {
      _ = try await RegistryDatabase(configuration, logger: TestPostgreSQL.quietLogger)
    }
    let log = LogRecorder()
    let registry = try await RegistryDatabase(configuration, waits: true, logger: log.logger)
    defer { registry.close() }
    #expect(log.count(of: "Waiting for the database of the registry") == 1)
    let refusal = await #expect(throws: RegistryError.self) { try await registry.check() }
    #expect(refusal?.code == .unavailable)
    let server = try PrivateServer(settings: ["listen_addresses": "127.0.0.1", "port": "\(port)"])
    try await registry.check()
    #expect(log.count(of: "Connected to PostgreSQL again") == 1)
    withExtendedLifetime(server) {}
  }
}

extension RegistryDatabase {
  /// The registrations that hold the handle.
  fileprivate func registrations(ofHandle handle: String) async throws -> [Registration] {
    try await read { try RegistrationTable($0, .default).registrations(ofHandle: handle) }
  }
}
