import FanfareCore
import Foundation
import GRDB
import Store
import Support
import Testing

@testable import Registry

/// Registries filled by version 0.2.0, the first one that later ones must read: they get the present tables, and
/// everything is read. See `GoldenFile`.
@Suite(.timeLimit(.minutes(2))) struct GoldenTests {
  private static let start = UnixTime(milliseconds: 1_790_000_000_000)
  private static let shop = HubName("shop") ?? .default
  private static let iPhone = String(repeating: "0123456789abcdef", count: 4)

  @Test func goldenFileIsReadCompletely() async throws {
    let file = GoldenFile("registry.db")
    if GoldenFile.isUpdating {
      let temporary = try TemporaryRegistry()
      try await Self.fill(temporary.registry)
      temporary.registry.close()
      // Errors are ignored: there may be no file yet.
      try? FileManager.default.removeItem(at: file.url)
      try await DatabaseQueue(path: temporary.configuration.path).vacuum(into: file.url.path)
    }
    let directory = FileManager.default.temporaryDirectory.appending(path: "golden-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    // Errors are ignored: the file is in the temporary directory.
    defer { try? FileManager.default.removeItem(at: directory) }
    let path = directory.appending(path: "registry.db").path
    try FileManager.default.copyItem(atPath: file.url.path, toPath: path)
    let registry = try RegistryDatabase(SQLiteRegistryConfiguration(path: path))
    let schema = try Self.schema(of: path)
    try GoldenFile("registry.txt").expect(try await Self.survey(registry))
    registry.close()
    let new = try TemporaryRegistry()
    #expect(try Self.schema(of: new.configuration.path) == schema, "a new file has the same tables")
  }

  @Test(TestPostgreSQL.isAvailable) func goldenDatabaseIsReadCompletely() async throws {
    let file = GoldenFile("registry.sql")
    if GoldenFile.isUpdating {
      try await withPostgreSQLRegistry { registry, database in
        try await Self.fill(registry)
        try GoldenDump.sql(of: database).write(to: file.url, atomically: true, encoding: .utf8)
      }
    }
    let schema = try await TestPostgreSQL.withSchema { database in
      try await GoldenDump.load(try String(contentsOf: file.url, encoding: .utf8), into: database)
      let registry = try await RegistryDatabase(database, logger: TestPostgreSQL.quietLogger)
      let schema = try await GoldenDump.schema(of: database)
      try GoldenFile("registry.txt").expect(try await Self.survey(registry))
      registry.close()
      return schema
    }
    try await withPostgreSQLRegistry { _, database in
      let new = try await GoldenDump.schema(of: database)
      #expect(new == schema, "a new database has the same tables")
    }
  }

  /// The statements that created a file's tables, and its versions.
  private static func schema(of path: String) throws -> [String] {
    try DatabaseQueue(path: path).read { db in
      let statements = try String.fetchAll(db, sql: "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY 1")
      let versions = try ["user_version", "application_id"].map {
        "\($0) \(try Int.fetchOne(db, sql: "PRAGMA \($0)") ?? -1)"
      }
      return versions + statements.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
    }
  }

  private static func id(_ number: UInt64) -> RegistrationID {
    RegistrationID(high: number << 32 | 0x4000, low: 1 << 63 + number)
  }
  private static func send(_ number: UInt64) -> SendID { SendID(high: 0x019F_0000_0000_7000, low: 1 << 63 + number) }
  private static func broadcast(_ number: UInt64) -> BroadcastID { BroadcastID(hub: .default, send: send(number)) }
  private static func scheduled(_ number: UInt64) -> ScheduledSend {
    ScheduledSend(
      send: SendRequest(
        id: send(number), sender: number == 20 ? nil : "alice", acceptedAt: start + .seconds(Int64(number)),
        audience: number == 21 ? .everyone : .user("bob"), content: Content(message: Message(body: "hello"))),
      scheduledAt: start + .milliseconds(Int64(number)))
  }
  private static func claim(_ number: UInt8) -> SendClaim {
    SendClaim(
      hub: number == 2 ? shop : .default, key: [UInt8](repeating: number, count: 32),
      request: [UInt8](repeating: number + 100, count: 32), at: start + .seconds(Int64(number)))
  }
  private static let lease = LeaseID(high: 1, low: 2)
  private static let file = ImportID(high: 3, low: 4)
  private static let quota = PushQuota(hub: .default, platform: .fcm, perMinute: 60)

  /// Stores every kind of row in every table.
  private static func fill(_ store: some DeviceRegistryConformance.Store) async throws {
    // Registrations are imported, so that their ids are fixed.
    let lines = [
      #"{"id":"\#(id(1))","user":"bob","platform":"apns","handle":"\#(iPhone)","tags":["news","sports"]}"#,
      #"{"id":"\#(id(2))","user":"bob","platform":"fcm","handle":"token:2","installation":"phone-2","tags":["news"]}"#,
      #"{"id":"\#(id(3))","user":"Zoë","platform":"wns","handle":"https://db5.notify.windows.com/?token=a","tags":["a:b#1.x@y-z_"],"registeredAt":"2026-09-01T00:00:00Z","createdAt":"2026-01-01T00:00:00Z","lastSeen":"2026-09-20T00:00:00Z"}"#,
      #"{"id":"\#(id(4))","user":"carol","platform":"fcm","handle":"token:4"}"#,
      #"{"id":"\#(id(5))","user":"carol","platform":"fcm","handle":"token:5"}"#,
      #"{"id":"\#(id(6))","user":"dave","platform":"fcm","handle":"token:6","lastSeen":"2020-01-01T00:00:00Z"}"#,
      #"{"id":"\#(id(7))","user":"dave","platform":"fcm","handle":"token:7"}"#,
    ]
    var counts = ImportCounts()
    counts.lines = lines.count
    for hub in [HubName.default, shop] {
      let registrations = try lines.enumerated().map {
        try RegistrationLine(Array($1.utf8)[...], number: $0 + 1, hub: hub, at: start)
      }
      _ = try await store.take(
        ImportBatch(hub: hub, file: hub == shop ? nil : file, bytes: 0..<1000, lines: registrations, counts: counts),
        at: start)
    }
    // Issued ids and removed registrations.
    _ = try await store.issue(hub: .default, handle: "pending", at: start)
    _ = try await store.complete(
      DeviceRequest(
        id: id(1), hub: .default, user: "bob", platform: .apns, handle: iPhone, tags: ["news", "late"]),
      at: start + .seconds(1))
    try await store.remove(id(4), hub: .default, user: "carol", at: start + .seconds(1))
    _ = try await store.drop(
      [DeadDevice(hub: .default, registration: id(5), handle: "token:5", since: nil, reason: "UNREGISTERED")],
      at: start + .seconds(2))
    _ = try await store.expire(
      seenBefore: start + .seconds(-86_400 * 365), hub: .default, of: .whole, limit: 100, at: start + .seconds(3))
    _ = try await store.complete(
      DeviceRequest(id: id(2), hub: shop, user: "bob", platform: .fcm, handle: "token:7", tags: []),
      at: start + .seconds(4))
    for number in 1...2 {
      try await store.store(
        "secret \(number) ü", id: SecurePayloadID(high: 5, low: UInt64(number)), hub: .default, recipient: "bob",
        expiresAt: start + .seconds(86_400))
    }
    _ = try await store.read(SecurePayloadID(high: 5, low: 2), hub: .default, recipient: "bob", at: start)
    for number in 1...3 as ClosedRange<UInt8> { _ = try await store.claim(claim(number), lifetime: .seconds(86_400)) }
    try await store.settle(claim(3))
    // Broadcasts: with a reservation only, planned, announced and half finished, paused, cancelled.
    _ = try await store.reserve(500, of: broadcast(1), perSecond: 100, at: start)
    _ = try await store.plan(broadcast(2), pages: 20, at: start)
    _ = try await store.plan(broadcast(3), pages: 10, at: start)
    try await store.announce(broadcast(3))
    try await store.finish([0, 1, 2, 7], of: broadcast(3), at: start + .seconds(5))
    _ = try await store.plan(broadcast(4), pages: 10, at: start)
    _ = try await store.control(broadcast(4), BroadcastControl(.paused, because: .failures), at: start)
    _ = try await store.control(broadcast(5), BroadcastControl(.cancelled, because: .caller), at: start)
    for _ in 0..<3 { _ = try await store.reserve(1, of: quota, at: start) }
    // Scheduled sends: fired, leased, paused, cancelled, waiting.
    try await store.hold((10...16).map(scheduled), at: start)
    try await store.hold([scheduled(20), scheduled(21)], at: start)
    let taken = try await store.takeDue(2, for: lease, until: start + .seconds(30), at: start + .seconds(11))
    try await store.finish(Array(taken.prefix(1)), of: lease, at: start + .seconds(11))
    _ = try await store.control(send(12), hub: .default, to: .paused, at: start)
    _ = try await store.control(send(13), hub: .default, to: .cancelled, at: start)
  }

  /// Describes everything in the store, as the API returns it.
  private static func survey(_ store: some DeviceRegistryConformance.Store) async throws -> [String] {
    let now = start + .seconds(60)
    var lines: [String] = []
    func add(_ title: String, _ values: [String]) { lines += ["# \(title)"] + values }
    for hub in [HubName.default, shop] {
      let all = try await store.list(.everyone, hub: hub, of: .whole, limit: 100).registrations
      add("registrations of \(hub)", all.map { String(decoding: $0.json, as: UTF8.self) })
      for registration in all { #expect(try await store.registration(registration.id, hub: hub) == registration) }
      let graves = try await store.tombstones(hub: hub, since: start, cause: nil, after: nil, limit: 100)
      add(
        "tombstones of \(hub)",
        graves.map { "\($0.registration) \($0.tombstone.cause.rawValue) '\($0.tombstone.detail)' \($0.tombstone.at)" })
    }
    add("installation", ["\(try await store.registration(ofInstallation: "phone-2", hub: .default)?.id as Any)"])
    let audiences: [Audience] = [
      .user("bob"), .tag("news"), .tag("a:b#1.x@y-z_"), Audience(anyOf: ["late", "sports"]), .everyone,
      .expression(try TagExpression("news && !late")), .registration(id(3)), .device(.fcm, handle: "token:7"),
    ]
    for audience in audiences {
      let query = AudienceQuery(hub: .default, audience: audience, platforms: .all)
      let page = try await store.page(query, of: .whole, createdBefore: now, limit: 100).targets
      add(
        "reached by \(audience.text)", page.map { "\($0.registration) \($0.platform) \($0.handle) \($0.registeredAt)" })
      let resolved = try await store.resolve([query])[0]
      #expect(audience.isBroadcast || Set(resolved) == Set(page))
    }
    let pending = try await store.issue(hub: .default, handle: "pending", at: now)
    #expect(try await store.issue(hub: .default, handle: "pending", at: now) == pending)
    #expect(try await store.registration(pending, hub: .default) == nil)
    var values: [String] = []
    for number in 1...2 as ClosedRange<UInt64> {
      let payload = try await store.read(
        SecurePayloadID(high: 5, low: number), hub: .default, recipient: "bob", at: now)
      values.append("\(payload?.payload ?? "-") \(payload?.isRead ?? false)")
    }
    add("secure payloads", values)
    values = []
    for number in 1...3 as ClosedRange<UInt8> {
      let other = SendClaim(
        hub: claim(number).hub, key: claim(number).key, request: [UInt8](repeating: 0, count: 32), at: now)
      let held = try await store.claim(other, lifetime: .seconds(86_400))
      values.append("\(held.at) \(held.request[0]) \(held.isSettled)")
    }
    add("claims", values)
    values = []
    for number in 1...6 as ClosedRange<UInt64> {
      guard let progress = try await store.progress(of: broadcast(number), at: start + .seconds(10)) else { continue }
      let control = progress.control
      let finished = try await store.finishedPages(of: broadcast(number), in: 0..<100)
      let next = try await store.reserve(1, of: broadcast(number), perSecond: 1, at: start)
      let plan = try await store.plan(broadcast(number), pages: 99, at: now)
      values.append(
        "\(number) \(progress.pages) \(progress.finishedPages) \(progress.recentPages) "
          + "\(progress.plannedAt?.description ?? "-") \(control.state.rawValue) \(control.cause.rawValue) \(finished) "
          + "\(next) \(plan.pages) \(plan.isAnnounced)")
    }
    add("broadcasts", values)
    add("quota", ["\(try await store.reserve(1, of: quota, at: start))"])
    values = []
    for number in 10...21 as ClosedRange<UInt64> {
      guard let held = try await store.scheduled(send(number), hub: .default) else { continue }
      #expect(held.send == scheduled(number).send && held.scheduledAt == scheduled(number).scheduledAt)
      values.append("\(number) \(held.state.rawValue)")
    }
    add("scheduled sends", values)
    let queries = [
      SendQuery(hub: .default), SendQuery(hub: .default, sender: "alice"), SendQuery(hub: .default, user: "bob"),
    ]
    for query in queries { add("waiting", try await store.waiting(query).map { "\($0.send.id)" }) }
    add("next due", ["\(try await store.nextDue()?.description ?? "-")"])
    let due = try await store.takeDue(100, for: LeaseID(high: 9, low: 9), until: now + .seconds(60), at: now)
    add("due", due.map { "\($0.send.id) \($0.mayBeEnqueued)" })
    let batches = try await store.finishedBatches(of: file, hub: .default)
    add("import", batches.map { "\($0.bytes) \($0.counts.lines) \($0.counts.imported)" })
    try await store.check()
    return lines
  }
}
