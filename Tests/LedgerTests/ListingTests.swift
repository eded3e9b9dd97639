import FanfareCore
import Support
import Testing

@testable import Ledger

@Suite(.everyStore, .timeLimit(.minutes(2))) struct ListingTests {
  private let directory: TemporaryDirectory
  private let store: any LedgerStore

  init() throws {
    directory = try TemporaryDirectory()
    store = try TestStore.make(directory)
  }

  private func send(_ sender: String?, to audience: Audience, after seconds: Int64, hub: HubName = .default)
    -> SendRequest
  {
    SendRequest(
      id: .random(), hub: hub, sender: sender, acceptedAt: .start + .seconds(seconds), audience: audience,
      content: Content(message: Message(body: "x")))
  }

  private func pages(_ query: SendQuery) async throws -> [[SendID]] {
    var (query, pages) = (query, [[SendID]]())
    repeat {
      let page = try await store.list(query)
      pages.append(page.sends.map(\.id))
      query.after = page.next
    } while query.after != nil
    return pages
  }

  @Test func pagesListTheNewestSendsFirst() async throws {
    // Groups of three sends have equal times.
    let sends = (0..<11).map { send("alice", to: .user("bob"), after: Int64($0 / 3)) }
    try await store.write(
      sends.shuffled().map(Sample.send) + [.send(send("alice", to: .user("bob"), after: 99, hub: Samples.otherHub))])
    let newest = sends.sorted { ($0.acceptedAt, $0.id) > ($1.acceptedAt, $1.id) }.map(\.id)
    for limit in [1, 3, 10, 11, 12] {
      let pages = try await pages(SendQuery(hub: .default, limit: limit))
      #expect(pages.flatMap(\.self) == newest)
      #expect(pages.dropLast().allSatisfy { $0.count == limit })
    }
    let third = try #require(HubName("third"))
    #expect(try await store.list(SendQuery(hub: third)) == SendPage(sends: [], next: nil))
  }

  @Test func userFilterMatchesSenderAndRecipient() async throws {
    let sends = [
      send("alice", to: .user("bob"), after: 1), send("bob", to: .tag("news"), after: 2),
      send("bob", to: .user("bob"), after: 3),
      send(nil, to: .user("bob"), after: 4), send("alice", to: .everyone, after: 5),
      send("alice", to: .user("bobby"), after: 6),
    ]
    try await store.write(sends.map(Sample.send))
    func list(sender: String? = nil, user: String? = nil) async throws -> [Int] {
      let pages = try await pages(SendQuery(hub: .default, sender: sender, user: user, limit: 2))
      return pages.flatMap(\.self).compactMap { id in sends.firstIndex { $0.id == id } }
    }
    #expect(try await list() == [5, 4, 3, 2, 1, 0])
    #expect(try await list(user: "bob") == [3, 2, 1, 0])
    #expect(try await list(sender: "alice") == [5, 4, 0])
    #expect(try await list(sender: "alice", user: "bob") == [0])
    #expect(try await list(sender: "bob", user: "bob") == [2, 1])
    #expect(try await list(user: "carol") == [])
    let all = try await store.list(SendQuery(hub: .default)).sends
    #expect(all.map(\.audience) == ["username:bobby", "*", "username:bob", "username:bob", "news", "username:bob"])
    #expect(all.map(\.isBroadcast) == [false, true, false, false, true, false])
  }

  @Test func kindFilterMatchesBroadcastsOrOthersOnly() async throws {
    let audiences: [Audience] = [
      .user("bob"), .tag("news"), .everyone, .registration(.random()), .device(.apns, handle: "ab"), .user("a && b"),
      .tag("username:bob"), .init(anyOf: ["username:bob", "news"]),
    ]
    let sends = audiences.enumerated().map { send("alice", to: $1, after: Int64($0)) }
    try await store.write(sends.map(Sample.send))
    for kind in SendQuery.Kind.allCases {
      for (sender, user) in [(nil, nil), ("alice", nil), (nil, "alice")] as [(String?, String?)] {
        var query = SendQuery(hub: .default, sender: sender, user: user, limit: 2)
        query.kind = kind
        let expected = sends.filter { $0.isBroadcast == (kind == .broadcast) }.map(\.id)
        #expect(try await pages(query).flatMap(\.self) == expected.reversed())
      }
    }
  }

  @Test func stateFilterMatchesEachState() async throws {
    let sends = (0..<6).map { send("alice", to: .user("bob"), after: Int64($0)) }
    let states: [StatusRecord.State?] = [nil, .settled, .noTarget, .expired, .deadLettered, .cancelled]
    try await store.write(sends.map(Sample.send))
    for (send, state) in zip(sends, states) {
      if let state { try await store.write([.status(Samples.status(send.id, state: state, at: send.acceptedAt))]) }
    }
    for (send, state) in zip(sends, states) {
      let state = state.flatMap { SendReport.State(rawValue: $0.rawValue) } ?? .accepted
      let page = try await store.list(SendQuery(hub: .default, state: state, user: "bob"))
      #expect(page.sends.map(\.id) == [send.id] && page.sends.first?.state == state)
    }
    #expect(try await store.list(SendQuery(hub: .default, state: .scheduled)).sends.isEmpty)
  }

  @Test func timesSelectByAcceptanceForEveryIndexAndPageByPage() async throws {
    // Over three days; two sends of one moment.
    let seconds: [Int64] = [0, 10, 10, 86_400, 86_401, 172_800]
    let sends = seconds.map { send("alice", to: .user("bob"), after: $0) }
    try await store.write(sends.map(Sample.send))
    func list(_ from: Int64?, _ until: Int64?, sender: String? = nil, user: String? = nil) async throws -> Set<Int> {
      let pages = try await pages(
        SendQuery(
          hub: .default, sender: sender, user: user, from: from.map { .start + .seconds($0) },
          until: until.map { .start + .seconds($0) }, limit: 1))
      let found = pages.flatMap(\.self).compactMap { id in sends.firstIndex { $0.id == id } }
      #expect(found.count == Set(found).count)
      return Set(found)
    }
    for (sender, user) in [(nil, nil), ("alice", nil), (nil, "bob"), ("alice", "bob")] as [(String?, String?)] {
      #expect(try await list(nil, nil, sender: sender, user: user) == Set(0..<6))
      #expect(try await list(10, nil, sender: sender, user: user) == Set(1..<6))
      #expect(try await list(nil, 10, sender: sender, user: user) == [0])
      #expect(try await list(10, 86_401, sender: sender, user: user) == [1, 2, 3])
      #expect(try await list(11, 86_400, sender: sender, user: user) == [])
    }
    let known = SendQuery(
      hub: .default, state: .accepted, from: .start + .seconds(86_400), until: .start + .seconds(86_401))
    #expect(try await store.list(known).sends.map(\.id) == [sends[3].id])
  }

  @Test func searchForRareSendsEndsItsPageEarly() async throws {
    let count = PageBuilder.mostExamined + 5
    let sends = (0..<count).map { send("alice", to: .user("bob"), after: Int64($0)) }
    try await store.write(sends.map(Sample.send) + [.status(Samples.status(sends[0].id, state: .expired))])
    let query = SendQuery(hub: .default, state: .expired)
    #expect(try await pages(query) == [[], [sends[0].id]])
    // Broadcasts have an index.
    let broadcast = send("alice", to: .everyone, after: -1)
    try await store.write([.send(broadcast)])
    var broadcasts = SendQuery(hub: .default)
    broadcasts.kind = .broadcast
    #expect(try await pages(broadcasts) == [[broadcast.id]])
  }
}
