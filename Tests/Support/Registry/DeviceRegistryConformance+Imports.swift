import FanfareCore
import Registry
import Testing

extension DeviceRegistryConformance {
  /// A line of a file and its expected result. Every case begins with alice's registration of the handle `h1` and bob's
  /// installation `i-1` with `h2`.
  private struct Brought: Sendable {
    let words: String
    var user = "alice"
    var handle = "h1"
    /// The owner of the id in the line.
    var id: Owner? = .alice
    var installation: String?
    var seenAt: UnixTime = .start
    let expected: Fate
    /// The owners whose registrations are removed.
    var gone: [Owner] = []

    enum Owner { case alice, bob, nobody }

    enum Fate {
      case imported, replaced, unchanged, outdated, skipped

      /// The count of this result.
      func count(_ counts: ImportCounts) -> Int {
        switch self {
        case .imported: counts.imported
        case .replaced: counts.replaced
        case .unchanged: counts.unchanged
        case .outdated: counts.outdated
        case .skipped: counts.skipped
        }
      }
    }
  }

  private static let brought = [
    Brought(words: "an identical registration", expected: .unchanged),
    Brought(words: "the owner's device, seen later", seenAt: .start + .seconds(1), expected: .replaced),
    Brought(words: "the owner's device, seen earlier", seenAt: .start + .seconds(-1), expected: .outdated),
    Brought(words: "the owner's device with another handle", handle: "h3", expected: .replaced),
    Brought(words: "the owner's device with another user's handle", handle: "h2", expected: .replaced, gone: [.bob]),
    Brought(words: "the owner's device without its id", id: nil, seenAt: .start + .seconds(1), expected: .replaced),
    Brought(words: "the owner's device under a new id", id: .nobody, expected: .replaced, gone: [.alice]),
    Brought(words: "a new device", handle: "h3", id: .nobody, expected: .imported),
    Brought(words: "a new device without an id", handle: "h3", id: nil, expected: .imported),
    Brought(words: "another user's device with the same handle", user: "carol", expected: .replaced),
    Brought(words: "another user's device with another handle", user: "carol", handle: "h3", expected: .skipped),
    Brought(
      words: "another user's device, seen earlier", user: "carol", seenAt: .start + .seconds(-1),
      expected: .outdated),
    Brought(
      words: "an installation's new handle", user: "bob", handle: "h3", id: nil, installation: "i-1",
      expected: .replaced),
    Brought(
      words: "an installation under a new id", user: "bob", handle: "h3", id: .nobody, installation: "i-1",
      expected: .replaced,
      gone: [.bob]),
    Brought(
      words: "an installation that has changed hands", handle: "h2", id: nil, installation: "i-1", expected: .replaced),
    Brought(
      words: "another user's installation", user: "carol", handle: "h3", id: nil, installation: "i-1",
      expected: .skipped),
    Brought(
      words: "one device that was registered twice", handle: "h2", id: .alice, installation: "i-1", expected: .replaced,
      gone: [.bob]
    ),
  ]

  /// Imports over stored registrations.
  static let imports: [Self] =
    brought.map { line in
      Self("a line of an import: \(line.words)") { store in
        let alice = try await store.register("alice", "h1", tags: ["news"])
        let bob = try await store.install("i-1", "bob", "h2")
        let ids: [Brought.Owner: RegistrationID] = [.alice: alice.id, .bob: bob.id, .nobody: .random()]
        let text = fileLine(
          id: line.id.flatMap { ids[$0] }, line.user, line.handle, installation: line.installation,
          tags: line.expected == .unchanged ? ["news"] : ["sport"], seenAt: line.seenAt)
        let before = try await store.everything()
        let outcome = try await store.bring([text])
        #expect(line.expected.count(outcome.counts) == 1 && outcome.counts.read == 1)
        #expect(outcome.refusals.map(\.line) == (line.expected == .skipped ? [1] : []))
        let after = try await store.everything()
        guard line.expected == .imported || line.expected == .replaced else { return #expect(after == before) }
        let id =
          line.id.flatMap { ids[$0] } ?? (line.installation != nil ? bob.id : line.handle == "h1" ? alice.id : nil)
        let taken = try #require(after.first { $0.handle == line.handle })
        #expect(id == nil || taken.id == id)
        #expect(taken.user == line.user && taken.installation == line.installation && taken.tags.contains("sport"))
        #expect(try await store.reached(by: .tag("sport")) == [taken.id])
        #expect(try await store.reached(by: .user(line.user)).contains(taken.id))
        #expect(try await store.reached(by: .device(.fcm, handle: line.handle)) == [taken.id])
        if let installation = line.installation {
          #expect(try await store.registration(ofInstallation: installation, hub: store.hub) == taken)
        }
        for owner in line.gone { #expect(!after.contains { $0.id == ids[owner] }) }
        let others = [alice, bob].filter { other in other.id != taken.id && !line.gone.contains { ids[$0] == other.id }
        }
        #expect(Set(after) == Set(others + [taken]), "nothing else changed")
        let tombstones = try await store.tombstones(
          hub: store.hub, since: UnixTime(milliseconds: 0), cause: nil, after: nil, limit: 10)
        #expect(tombstones.map(\.tombstone.cause) == line.gone.map { _ in .merged })
        #expect(tombstones.map(\.tombstone.detail) == line.gone.map { _ in taken.id.description })
      }
    } + [
      Self("an export imports as the same registrations") { store in
        let other = try #require(HubName("other"))
        for number in 0..<7 {
          _ = try await store.register("user \(number) \u{E9}\"\\", "h\(number)", tags: (0..<number).map { "t:\($0)" })
        }
        _ = try await store.register("alice", "AB", platform: .apns, at: .start + .seconds(5))
        _ = try await store.register("alice", "https://x.notify.windows.com/?token=a%2fb", platform: .wns)
        let installed = try await store.install("i-1", "bob", "cc", platform: .apns, tags: ["news"])
        _ = try await store.revise(
          installed,
          by: DeviceRequest(
            installation: "i-1", hub: store.hub, user: "bob", platform: .apns, handle: "cc", tags: ["sport"]),
          at: .start + .seconds(60))
        _ = try await store.issue(hub: store.hub, handle: "pending", at: .start)
        let before = try await store.everything()
        let lines = before.map { String(decoding: $0.json, as: UTF8.self) }
        let outcome = try await store.bring(lines.shuffled(), hub: other, at: .start + .seconds(3600))
        #expect(outcome.counts.imported == 10 && outcome.counts.read == 10)
        let after = try await store.everything(hub: other)
        #expect(after.map { String(decoding: $0.json, as: UTF8.self) } == lines)
        #expect(try await store.reached(by: .tag("sport"), hub: other) == [installed.id])
        let again = try await store.bring(lines, hub: other, at: .start + .seconds(7200))
        #expect(again.counts.unchanged == 10 && again.counts.read == 10)
        #expect(try await store.everything() == before, "nothing crosses from one hub to another")
      },
      Self("registrations by clocks that differ are exported and imported") { store in
        let other = try #require(HubName("other"))
        let later = UnixTime.start + .milliseconds(5)
        _ = try await store.register("alice", "h1", at: later)
        // The file has an earlier time than the store.
        let words =
          #""user":"alice","platform":"fcm","handle":"h1","registeredAt":"\#(UnixTime.start)","lastSeen":"\#(later)""#
        #expect(try await store.bring(["{\(words)}"], at: later).counts.replaced == 1)
        // Another machine's clock is behind.
        let bob = try await store.register("bob", "h2", at: later)
        _ = try await store.complete(bob.id, "bob", "h2", at: .start)
        for moment in [later, .start] { _ = try await store.install("i-1", "carol", "h3", at: moment) }
        let before = try await store.everything()
        #expect(
          before.map(\.createdAt) == [.start, .start, .start] && before.map(\.registeredAt) == [.start, .start, .start])
        let outcome = try await store.bring(
          before.map { String(decoding: $0.json, as: UTF8.self) }, hub: other, at: later)
        #expect(outcome.counts.imported == 3)
        #expect(try await store.everything(hub: other).map(\.json) == before.map(\.json))
      },
      Self("known lines are found among many new ones") { store in
        let alice = try await store.register("alice", "h1")
        let bob = try await store.install("i-1", "bob", "h2")
        let later = UnixTime.start + .seconds(1)
        let new = (0..<40).map {
          fileLine(id: .random(), "user-\($0)", "n\($0)", installation: $0 == 7 ? "i-7" : nil, tags: ["t"])
        }
        let known = [
          fileLine(id: alice.id, "alice", "h3", seenAt: later),
          fileLine(id: nil, "bob", "h4", installation: "i-1", seenAt: later),
        ]
        for (lines, replaced) in [(new + known, 2), (new.map { $0.replacing("\"t\"", with: "\"u\"") }, 40)] {
          let outcome = try await store.bring(lines)
          #expect((outcome.counts.imported, outcome.counts.replaced) == (lines.count - replaced, replaced))
        }
        let all = try await store.everything()
        #expect(Set(all.map(\.handle)) == Set((0..<40).map { "n\($0)" } + ["h3", "h4"]) && all.count == 42)
        #expect(try await store.reached(by: .tag("u")).count == 40)
        #expect(try await store.reached(by: .tag("t")).isEmpty)
        #expect(all.first { $0.handle == "h3" }?.id == alice.id && all.first { $0.handle == "h4" }?.id == bob.id)
        #expect(try await store.registration(ofInstallation: "i-7", hub: store.hub)?.handle == "n7")
      },
      Self("of several lines for one device the last wins, and no handle has two holders") { store in
        let ids = (0..<3).map { _ in RegistrationID.random() }
        let outcome = try await store.bring([
          fileLine(id: ids[0], "alice", "h1", installation: "i-1", tags: ["a"]),
          fileLine(id: ids[0], "alice", "h2", tags: ["b"]),
          fileLine(id: ids[1], "bob", "h1", tags: ["c"]), fileLine(id: ids[2], "carol", "h1", tags: ["d"]),
          fileLine(id: ids[0], "dave", "h3"), fileLine(id: ids[1], "bob", "h2", tags: ["e"]),
        ])
        #expect((outcome.counts.imported, outcome.counts.replaced, outcome.counts.skipped) == (2, 3, 1))
        #expect(outcome.refusals.map(\.line) == [5] && outcome.refusals[0].reason.hasPrefix("id "))
        let all = try await store.everything()
        #expect(Set(all.map { "\($0.user) \($0.handle) \($0.id)" }) == ["carol h1 \(ids[2])", "bob h2 \(ids[1])"])
        for (tag, reached) in [("a", nil), ("b", nil), ("c", nil), ("d", 2), ("e", 1)] as [(String, Int?)] {
          #expect(try await store.reached(by: .tag(tag)) == Set(reached.map { [ids[$0]] } ?? []), "\(tag)")
        }
        #expect(try await store.registration(ofInstallation: "i-1", hub: store.hub) == nil)
        // Two devices swap their handles.
        _ = try await store.bring([
          fileLine(id: ids[1], "bob", "h9"), fileLine(id: ids[2], "carol", "h2"), fileLine(id: ids[1], "bob", "h1"),
        ])
        #expect(try await store.reached(by: .device(.fcm, handle: "h1")) == [ids[1]])
        #expect(try await store.reached(by: .device(.fcm, handle: "h2")) == [ids[2]])
      },
      Self("an issued id and its handle are replaced, and a removed id is restored") { store in
        let pending = try await store.issue(hub: store.hub, handle: "h1", at: .start)
        let other = try await store.issue(hub: store.hub, handle: "h2", at: .start)
        let removed = try await store.register("alice", "h3")
        try await store.remove(removed.id, hub: store.hub, user: "alice", at: .start)
        let outcome = try await store.bring([
          fileLine(id: pending, "alice", "h4"), fileLine(id: .random(), "alice", "h2"),
          fileLine(id: removed.id, "alice", "h3"),
        ])
        #expect(outcome.counts.imported == 3)
        #expect(try await store.registration(pending, hub: store.hub)?.handle == "h4")
        #expect(try await store.registration(removed.id, hub: store.hub)?.handle == "h3")
        #expect(try await store.issue(hub: store.hub, handle: "h1", at: .start) != pending)
        await expect(.gone) { try await store.complete(other, "alice", "h5") }
        let tombstones = try await store.tombstones(
          hub: store.hub, since: UnixTime(milliseconds: 0), cause: nil, after: nil, limit: 10)
        #expect(tombstones.map(\.registration) == [other])
      },
      Self("a batch is imported once, and known as finished until its file is forgotten") { store in
        let file = ImportID.random()
        let lines = [fileLine(id: .random(), "alice", "h1"), fileLine(id: .random(), "alice", "h2")]
        let first = try await store.bring([lines[0]], of: file, bytes: 0..<100)
        let second = try await store.bring([lines[1]], of: file, bytes: 100..<170)
        #expect(first.counts.imported == 1 && second.counts.imported == 1)
        let again = try await store.bring([fileLine(id: .random(), "alice", "h9")], of: file, bytes: 0..<100)
        #expect(again.counts == first.counts && again.refusals.isEmpty)
        let expected = [
          FinishedImportBatch(bytes: 0..<100, counts: first.counts),
          FinishedImportBatch(bytes: 100..<170, counts: second.counts),
        ]
        #expect(try await store.finishedBatches(of: file, hub: store.hub) == expected)
        #expect(try await store.finishedBatches(of: .random(), hub: store.hub) == [])
        #expect(try await store.finishedBatches(of: file, hub: #require(HubName("other"))) == [])
        try await store.forget(file, hub: store.hub)
        #expect(try await store.finishedBatches(of: file, hub: store.hub) == [])
        #expect(try await store.everything().map(\.handle).sorted() == ["h1", "h2"])
      },
    ]
}

/// A line of a file of registrations.
private func fileLine(
  id: RegistrationID?, _ user: String, _ handle: String, installation: String? = nil, tags: [String] = [],
  seenAt: UnixTime = .start
) -> String {
  var members = [#""user":"\#(user)","platform":"fcm","handle":"\#(handle)","registeredAt":"\#(seenAt)""#]
  if let id { members.append(#""id":"\#(id)""#) }
  if let installation { members.append(#""installation":"\#(installation)""#) }
  members.append(#""tags":[\#(tags.map { #""\#($0)""# }.joined(separator: ","))]"#)
  return "{\(members.joined(separator: ","))}"
}

extension RegistrationDirectory where Self: RegistrationImportStore {
  /// Imports a batch of lines.
  func bring(
    _ lines: [String], of file: ImportID? = nil, bytes: Range<Int64> = 0..<1, hub: HubName = .default,
    at now: UnixTime = .start
  ) async throws -> ImportOutcome {
    let lines = try lines.enumerated().map { number, text in
      try RegistrationLine(Array(text.utf8)[...], number: number + 1, hub: hub, at: now)
    }
    var counts = ImportCounts()
    counts.lines = lines.count
    return try await take(ImportBatch(hub: hub, file: file, bytes: bytes, lines: lines, counts: counts), at: now)
  }

  /// All registrations of a hub, by ascending ids.
  func everything(hub: HubName = .default) async throws -> [Registration] {
    try await list(.everyone, hub: hub, of: .whole, limit: 10_000).registrations
  }
}
