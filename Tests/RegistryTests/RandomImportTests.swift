import FanfareCore
import Store
import Support
import Testing

@testable import Registry

/// Random lines with few users, ids, handles and installations, so that they conflict, in batches of any size: both
/// stores must have the same result as an import line by line.
@Suite(TestPostgreSQL.isAvailable, .timeLimit(.minutes(2))) struct RandomImportTests {
  private typealias Store = DeviceRegistry & RegistrationDirectory & RegistrationImportStore

  @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
  func storesHaveTheSameResultForAFile(seed: UInt64) async throws {
    let temporary = try TemporaryRegistry()
    try await withPostgreSQLRegistry { registry, _ in
      var random = SeededGenerator(seed: seed)
      let clock = ManualClock()
      let ids = (0..<8).map { _ in RegistrationID.random(using: &random) }
      for round in 0..<25 {
        let lines = try (0..<Int.random(in: 1...20, using: &random)).map { number in
          try line(number + 1, ids, at: clock.now(), &random)
        }
        let batch = ImportBatch(
          hub: .default, file: nil, bytes: 0..<1, lines: lines, counts: ImportCounts())
        let one = try await registry.take(batch, at: clock.now())
        // The reference: one line at a time.
        var other = ImportOutcome(counts: ImportCounts())
        for line in lines {
          let single = ImportBatch(hub: .default, file: nil, bytes: 0..<1, lines: [line], counts: ImportCounts())
          let outcome = try await temporary.registry.take(single, at: clock.now())
          other.counts += outcome.counts
          other.refusals += outcome.refusals
        }
        #expect(one.counts == other.counts && one.refusals.map(\.line) == other.refusals.map(\.line), "round \(round)")
        let (left, right) = (try await everything(registry), try await everything(temporary.registry))
        // Compared as bytes: `==` on texts is canonical equivalence.
        #expect(left.map(\.json) == right.map(\.json), "round \(round)")
        for registration in left {
          for tag in registration.tags {
            for store in [registry, temporary.registry] as [any Store] {
              #expect(try await store.resolve([query(.tag(tag))])[0].contains { $0.registration == registration.id })
            }
          }
        }
        clock.advance(by: .seconds(60))
      }
      let strays = try await registry.readDatabase { connection in
        try connection.execute(
          """
          SELECT (SELECT count(*) FROM handles h FULL JOIN registrations r ON r.hub = h.hub AND r.id = h.registration AND r.handle = h.handle
            WHERE h.hub IS NULL OR r.hub IS NULL OR h.platform IS DISTINCT FROM r.platform OR h.registered_at <> r.registered_at)
          + (SELECT count(*) FROM installations i FULL JOIN registrations r ON r.hub = i.hub AND r.id = i.registration
            WHERE i.installation IS DISTINCT FROM r.installation)
          + (SELECT count(*) FROM tags t FULL JOIN (SELECT *, unnest(tags) AS tag FROM registrations) r
            ON r.hub = t.hub AND r.id = t.registration AND r.tag = t.tag AND r.platform = t.platform AND r.handle = t.handle
              AND r.registered_at = t.registered_at AND r.created_at = t.created_at
            WHERE r.hub IS NULL OR t.hub IS NULL)
          + (SELECT count(*) FROM tombstones t JOIN registrations r ON r.hub = t.hub AND r.id = t.registration)
          """
        ).integer(0, 0)
      }
      #expect(strays == 0)
    }
  }

  private func line(
    _ number: Int, _ ids: [RegistrationID], at now: UnixTime, _ random: inout SeededGenerator
  ) throws -> RegistrationLine {
    func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &random)] }
    var members = [
      #""user":"\#(pick(["alice", "bob", "ren\u{E9}", "rene\u{301}"]))""#, #""platform":"\#(pick(["apns", "fcm"]))""#,
      #""handle":"\#(pick(["aa", "AA", "bb", "cc", "dd"]))""#,
      #""tags":\#(pick(["[]", #"["news"]"#, #"["news","sport"]"#]))"#,
      // Every line has an id: a random one would differ between the stores.
      #""id":"\#(pick(ids))""#,
    ]
    if Int.random(in: 0..<3, using: &random) == 0 { members.append(#""installation":"\#(pick(["i-1", "i-2"]))""#) }
    if Int.random(in: 0..<4, using: &random) == 0 { members.append(#""lastSeen":"\#(now + .seconds(-90))""#) }
    let text = "{\(members.joined(separator: ","))}"
    return try RegistrationLine(Array(text.utf8)[...], number: number, hub: .default, at: now)
  }

  private func everything(_ store: any Store) async throws -> [Registration] {
    try await store.list(.everyone, hub: .default, of: .whole, limit: 1000).registrations
  }
}
