import FanfareCore
import Testing

extension DeviceRegistryConformance {
  /// Quotas of callers.
  static let callerQuotas: [Self] = [
    Self("all front ends together get no more than a rate allows") { store in
      let rate = CallerRate(
        hub: store.hub, user: "ann", name: .sends, limit: RateLimit(perSecond: 10, burst: 100))
      let granted = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<30 {
          group.addTask {
            try await store.reserve(RateDemand(atLeast: 1, atMost: 7), of: rate, at: .start).permits
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(granted == 100)
      let refused = try await store.reserve(RateDemand(atLeast: 5, atMost: 9), of: rate, at: .start)
      #expect((refused.permits, refused.nextAt) == (0, .start + .milliseconds(500)))
      let later = UnixTime.start + .seconds(2)
      #expect(try await store.reserve(RateDemand(atLeast: 1, atMost: 99), of: rate, at: later).permits == 20)
    },
    Self("each user, hub and quota has a rate of its own") { store in
      let other = try #require(HubName("other"))
      let limit = RateLimit(perSecond: 1, burst: 1)
      for (hub, user, name) in [
        (store.hub, "ren\u{E9}", QuotaName.sends), (store.hub, "rene\u{301}", .sends), (other, "ren\u{E9}", .sends),
        (store.hub, "ren\u{E9}", .registrations),
      ] {
        let rate = CallerRate(hub: hub, user: user, name: name, limit: limit)
        for permits in [1, 0] {
          #expect(try await store.reserve(RateDemand(atLeast: 1, atMost: 1), of: rate, at: .start).permits == permits)
        }
      }
    },
    Self("open broadcasts are counted until they end, are cancelled or finished") { store in
      let broadcasts = (0..<5).map { _ in BroadcastID(hub: store.hub, send: .timeOrdered(at: .start)) }
      func open(_ index: Int, by user: String = "ann", at now: UnixTime = .start) async throws -> Bool {
        try await store.open(broadcasts[index], by: user, until: .start + .seconds(60), limit: 2, at: now)
      }
      #expect(try await open(0))
      #expect(try await open(0), "the same broadcast counts once")
      #expect(try await open(1))
      #expect(try await open(2) == false)
      #expect(try await open(2, by: "ben"))
      _ = try await store.plan(broadcasts[0], pages: 2, at: .start)
      try await store.finish([0], of: broadcasts[0], at: .start)
      #expect(try await open(2) == false)
      try await store.finish([1], of: broadcasts[0], at: .start)
      #expect(try await open(2))
      _ = try await store.control(
        broadcasts[1], BroadcastControl(.cancelled, because: .caller), at: .start)
      #expect(try await open(3))
      #expect(try await open(4) == false)
      try await store.close(broadcasts[3], by: "ann")
      #expect(try await open(4))
      #expect(try await open(3) == false)
      #expect(try await open(3, at: .start + .seconds(60)))
    },
    Self("a broadcast that never began is open for an hour") { store in
      let sends = (0..<4).map { SendID.timeOrdered(at: .start + .seconds($0)) }
      func open(_ send: SendID, at now: UnixTime) async throws -> Bool {
        let end = UnixTime.start + .seconds(86_400)
        return try await store.open(BroadcastID(hub: store.hub, send: send), by: "ann", until: end, limit: 3, at: now)
      }
      for send in sends[..<3] { #expect(try await open(send, at: .start)) }
      _ = try await store.plan(BroadcastID(hub: store.hub, send: sends[1]), pages: 9, at: .start)
      let later = scheduled(store.hub, id: sends[2], due: .start + .seconds(50_000))
      #expect(try await store.hold([later], within: .none, at: .start) == nil)
      #expect(try await open(sends[3], at: .start + .seconds(3600)) == false)
      #expect(try await open(sends[3], at: .start + .seconds(3601)))
      #expect(try await open(.timeOrdered(at: .start + .seconds(9000)), at: .start + .seconds(9000)))
      #expect(try await open(.timeOrdered(at: .start + .seconds(9000)), at: .start + .seconds(9000)) == false)
    },
    Self("a sender's scheduled sends are limited, all or none of a request") { store in
      let limit = ScheduledSendLimit(sends: 3, bytes: 0)
      func hold(_ sends: [ScheduledSend], at now: UnixTime = .start) async throws -> QuotaName? {
        try await store.hold(sends, within: limit, at: now)
      }
      let sends = (0..<8).map { scheduled(store.hub, due: .start + .seconds(100 + $0)) }
      #expect(try await hold(Array(sends[..<2])) == nil)
      #expect(try await hold(Array(sends[2..<4])) == .scheduledSends)
      #expect(try await store.scheduled(sends[2].send.id, hub: store.hub) == nil)
      #expect(try await hold([scheduled(store.hub, due: .start, sender: "ben")]) == nil)
      #expect(try await hold([sends[2]]) == nil)
      #expect(try await hold([sends[3]]) == .scheduledSends)
      // A cancelled one no longer counts, once the sends are counted again.
      _ = try await store.control(sends[0].send.id, hub: store.hub, to: .cancelled, at: .start)
      #expect(try await hold([sends[3]], at: .start + .seconds(10)) == nil)
      #expect(try await hold([sends[4]], at: .start + .seconds(10)) == .scheduledSends)
      let bytes = sends[0].send.encoded().count
      let tight = ScheduledSendLimit(sends: 0, bytes: 4 * bytes)
      #expect(try await store.hold([sends[5]], within: tight, at: .start + .seconds(20)) == .scheduledBytes)
      let use = try #require(
        try await store.quotaUse(hub: store.hub, user: "ann", after: nil, limit: 1, at: .start).first)
      #expect(use.stocks[.scheduledSends] == 3)
      #expect(use.stocks[.scheduledBytes] == 4 * bytes)
    },
    Self("the devices of an audience are estimated") { store in
      for number in 0..<30 {
        _ = try await store.register("u\(number % 5)", "h\(number)", tags: number < 20 ? ["news"] : ["rare"])
      }
      let expression = try TagExpression("news && !rare")
      let costs = try await store.estimatedDevices(
        of: [.everyone, .tag("news"), Audience(anyOf: ["news", "rare"]), .expression(expression), .tag("none")],
        hub: store.hub)
      #expect(costs == [30, 20, 30, 20, 0])
    },
    Self("the use of quotas is listed by user") { store in
      let rate = CallerRate(
        hub: store.hub, user: "ann", name: .sends, limit: RateLimit(perSecond: 10, burst: 100))
      _ = try await store.reserve(RateDemand(atLeast: 5, atMost: 5), of: rate, at: .start)
      _ = try await store.open(
        BroadcastID(hub: store.hub, send: .random()), by: "ben", until: .start + .seconds(60), limit: 9, at: .start)
      _ = try await store.register("ben", "h")
      let all = try await store.quotaUse(hub: store.hub, user: nil, after: nil, limit: 9, at: .start)
      #expect(all.map(\.user) == ["ann", "ben"])
      #expect(all.first?.reservedUntil == [.sends: UnixTime.start.milliseconds * 1000 + 500_000])
      #expect(all.last?.stocks[.openBroadcasts] == 1)
      #expect(all.last?.devices == 1)
      #expect(try await store.quotaUse(hub: store.hub, user: nil, after: "ann", limit: 9, at: .start).count == 1)
      #expect(try await store.quotaUse(hub: store.hub, user: "ann", after: nil, limit: 9, at: .start) == [all[0]])
    },
  ]

  private static func scheduled(
    _ hub: HubName, id: SendID = .random(), due: UnixTime, sender: String = "ann"
  ) -> ScheduledSend {
    ScheduledSend(
      send: SendRequest(
        id: id, hub: hub, sender: sender, acceptedAt: due, audience: .user("bob"),
        content: Content(message: Message(body: "b"))), scheduledAt: .start)
  }
}
