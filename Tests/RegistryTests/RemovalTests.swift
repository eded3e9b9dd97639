import FanfareCore
import Foundation
import Store
import Support
import Testing

@testable import Registry

/// Removal of devices while their apps register.
@Suite(TestPostgreSQL.isAvailable, .timeLimit(.minutes(2))) struct RemovalTests {
  private let clock = ManualClock()

  @Test func registrationDoesNotWaitForAllDrops() async throws {
    try await withPostgreSQLRegistry { registry, configuration in
      let devices = try await register(250, in: registry)
      let (first, last) = (try #require(devices.first), try #require(devices.last))
      clock.advance(by: .seconds(1))

      let database = try Database(configuration)
      let lock = try await HeldLock(
        "SELECT 1 FROM handles WHERE handle = '\(last.handle)' FOR UPDATE", in: database.pool)
      async let dropped = registry.drop(devices.map(Self.verdict), at: clock.now())
      defer { lock.allowRelease() }
      try await lock.waitUntilAwaited()
      let application = DeviceRequest(
        installation: first.installation, hub: .default, user: "alice", platform: .fcm,
        handle: first.handle)
      let anew = try await registry.install(application, at: clock.now())
      try await lock.release()
      #expect(try await dropped == devices.map(\.id))
      #expect(try await registry.list(.everyone, hub: .default, of: .whole, limit: 1000).registrations == [anew])
      #expect(try await registry.tombstone(of: first.id, hub: .default)?.cause == .dead)
    }
  }

  @Test func dropLocksInTheOrderOfRegistering() async throws {
    try await withPostgreSQLRegistry { registry, configuration in
      let device = try await registry.install(
        DeviceRequest(installation: "i-1", hub: .default, user: "alice", platform: .fcm, handle: "h1"),
        at: clock.now())
      let database = try Database(configuration)
      // The locks of an app that registers its installation.
      let lock = try await HeldLock(
        "SELECT 1 FROM installations WHERE installation = 'i-1' FOR UPDATE", in: database.pool,
        last: [
          "SELECT 1 FROM handles WHERE handle = 'h1' FOR UPDATE NOWAIT",
          "SELECT 1 FROM registrations WHERE handle = 'h1' FOR UPDATE NOWAIT",
        ])
      async let dropped = registry.drop([Self.verdict(device)], at: clock.now())
      defer { lock.allowRelease() }
      try await lock.waitUntilAwaited()
      try await lock.release()
      #expect(try await dropped == [device.id])
    }
  }

  @Test func dropReturnsTheDevicesDroppedBeforeAnError() async throws {
    try await withPostgreSQLRegistry { registry, configuration in
      let devices = try await register(250, in: registry)
      clock.advance(by: .seconds(1))
      try await Database(configuration).refuseTombstones(of: try #require(devices.last).id)
      #expect(try await registry.drop(devices.map(Self.verdict), at: clock.now()) == devices[..<200].map(\.id))
      let rest = devices[200...].map(Self.verdict)
      await #expect(throws: RegistryError.self) { try await registry.drop(rest, at: clock.now()) }
      #expect(
        try await registry.list(.everyone, hub: .default, of: .whole, limit: 1000).registrations == devices.suffix(50))
    }
  }

  @Test func expiryContinuesAfterAnError() async throws {
    try await withPostgreSQLRegistry { registry, configuration in
      let devices = try await register(250, in: registry)
      clock.advance(by: .seconds(1))
      try await Database(configuration).refuseTombstones(of: try #require(devices.last).id)
      let now = clock.now()
      let step = try await registry.expire(seenBefore: now, hub: .default, of: .whole, limit: 1000, at: now)
      #expect(step == ExpiryStep(removed: 200, last: devices[199].id))
      let rest = try #require(step.last.flatMap(RegistrationSlice.whole.after))
      await #expect(throws: RegistryError.self) {
        try await registry.expire(seenBefore: now, hub: .default, of: rest, limit: 1000, at: now)
      }
    }
  }

  /// Registers that many devices. Returns them by ascending ids.
  private func register(_ count: Int, in registry: RegistryDatabase) async throws -> [Registration] {
    let lines = try (1...count).map { number in
      let text = #"{"user":"alice","platform":"fcm","handle":"h\#(number)","installation":"i-\#(number)"}"#
      return try RegistrationLine(Array(text.utf8)[...], number: number, hub: .default, at: clock.now())
    }
    let batch = ImportBatch(hub: .default, file: nil, bytes: 0..<1, lines: lines, counts: ImportCounts())
    #expect(try await registry.take(batch, at: clock.now()).counts.imported == lines.count)
    return try await registry.list(.everyone, hub: .default, of: .whole, limit: 1000).registrations
  }

  private static func verdict(_ device: Registration) -> DeadDevice {
    DeadDevice(hub: .default, registration: device.id, handle: device.handle, since: nil, reason: "Unregistered")
  }
}

/// Another client of the registry's database.
private final class Database: Sendable {
  let pool: PostgreSQLPool

  init(_ configuration: PostgreSQLConfiguration) throws {
    pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
  }

  deinit { pool.close() }

  /// Makes every removal of the registration fail.
  func refuseTombstones(of id: RegistrationID) async throws {
    try await pool.transaction { connection in
      _ = try connection.execute("ALTER TABLE tombstones ADD CHECK (registration <> '\(id)')")
    }
  }
}
