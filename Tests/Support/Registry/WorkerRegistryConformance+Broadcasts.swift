import FanfareCore
import Testing

extension WorkerRegistryConformance {
  /// Broadcasts: plan, pages, control and rate.
  static let broadcasts: [Self] = [
    Self("the first plan of a broadcast is kept, with whether its segments are durable") { store in
      let broadcast = BroadcastID(hub: store.hub, send: .random())
      #expect(try await store.progress(of: broadcast, at: .start) == nil)
      let first = try await store.plan(broadcast, BroadcastPlan(pages: 40, segments: 7), at: .start)
      #expect(first == (40, 7, false))
      let second = try await store.plan(broadcast, BroadcastPlan(pages: 41, segments: 8), at: .start + .seconds(1))
      #expect(second == (40, 7, false))
      try await store.announce(broadcast)
      let third = try await store.plan(broadcast, pages: 41, at: .start + .seconds(2))
      #expect(third == (40, 7, true))
      let progress = try await store.progress(of: broadcast, at: .start + .seconds(3))
      #expect(progress?.pages == 40 && progress?.segments.count == 7 && progress?.plannedAt == .start)
      #expect(progress?.control == .initial && progress?.finishedPages == 0 && progress?.recentPages == 0)
    },
    Self("pages are finished once per broadcast") { store in
      let send = SendID.random()
      let other = try #require(HubName("other"))
      let broadcasts = [BroadcastID(hub: store.hub, send: send), BroadcastID(hub: other, send: send)]
      for broadcast in broadcasts { _ = try await store.plan(broadcast, pages: 8, at: .start) }
      try await store.finish([3, 5], of: broadcasts[0], at: .start)
      try await store.finish([5, 4], of: broadcasts[0], at: .start + .seconds(40))
      #expect(try await store.finishedPages(of: broadcasts[0], in: 0..<8) == [3, 4, 5])
      #expect(try await store.finishedPages(of: broadcasts[0], in: 4..<5) == [4])
      #expect(try await store.finishedPages(of: broadcasts[1], in: 0..<8) == [])
      let progress = try #require(try await store.progress(of: broadcasts[0], at: .start + .seconds(45)))
      #expect((progress.finishedPages, progress.recentPages) == (3, 1))
      // Five pages are left, and one was finished in the window of thirty seconds.
      #expect(progress.remaining(at: .start + .seconds(45)) == .seconds(150))
    },
    Self("a broadcast is steered, even before its plan, and a cancelled one stays cancelled") { store in
      let early = BroadcastID(hub: store.hub, send: .random())
      let unknown = BroadcastID(hub: store.hub, send: .random())
      let paused = BroadcastControl(.paused, because: .caller)
      #expect(try await store.control(early, paused, at: .start) == paused)
      let plan = try await store.plan(early, pages: 2, at: .start)
      #expect(plan == (2, 0, false))
      #expect(try await store.controls(of: [unknown, early]) == [.initial, paused])
      // Failures do not change a pause by the caller.
      #expect(try await store.control(early, BroadcastControl(.paused, because: .failures), at: .start) == paused)
      let running = BroadcastControl(.running, because: .caller)
      #expect(try await store.control(early, running, at: .start) == running)
      let stopped = BroadcastControl(.paused, because: .failures)
      #expect(try await store.control(early, stopped, at: .start) == stopped)
      let cancelled = BroadcastControl(.cancelled, because: .caller)
      #expect(try await store.control(early, cancelled, at: .start) == cancelled)
      #expect(try await store.control(early, running, at: .start) == cancelled)
      #expect(try await store.progress(of: early, at: .start)?.remaining(at: .start) == nil)
    },
    Self("a rate is kept through plan and steering, and a cancelled broadcast takes none") { store in
      let broadcasts = (0..<3).map { _ in BroadcastID(hub: store.hub, send: .random()) }
      // Before the plan, whose rate is then ignored; with the plan; and after it.
      #expect(
        try await store.limit(broadcasts[0], to: .perSecond(50), at: .start)
          == BroadcastControl(.running, because: .accepted, rate: .perSecond(50)))
      for broadcast in broadcasts[..<2] {
        _ = try await store.plan(broadcast, BroadcastPlan(pages: 8, segments: 2, rate: .perSecond(9)), at: .start)
      }
      _ = try await store.plan(broadcasts[2], BroadcastPlan(pages: 8, rate: .unlimited), at: .start)
      let paused = BroadcastControl(.paused, because: .caller, rate: .perSecond(50))
      #expect(try await store.control(broadcasts[0], BroadcastControl(.paused, because: .caller), at: .start) == paused)
      _ = try await store.limit(broadcasts[1], to: .unlimited, at: .start)
      _ = try await store.limit(broadcasts[2], to: .perSecond(7), at: .start)
      #expect(
        try await store.controls(of: broadcasts)
          == [
            paused, BroadcastControl(.running, because: .accepted, rate: .unlimited),
            BroadcastControl(.running, because: .accepted, rate: .perSecond(7)),
          ])
      #expect(try await store.progress(of: broadcasts[0], at: .start)?.control == paused)
      let cancelled = BroadcastControl(.cancelled, because: .caller, rate: .perSecond(50))
      #expect(
        try await store.control(broadcasts[0], BroadcastControl(.cancelled, because: .caller), at: .start) == cancelled)
      #expect(try await store.limit(broadcasts[0], to: .unlimited, at: .start) == cancelled)
    },
    Self("finished pages are counted by segment") { store in
      let broadcast = BroadcastID(hub: store.hub, send: .random())
      _ = try await store.plan(broadcast, BroadcastPlan(pages: 10, segments: 3), at: .start)
      // The segments have pages 0 to 2, 3 to 5, and 6 to 9.
      try await store.finish([0, 2, 3, 5, 6, 7, 9], of: broadcast, at: .start)
      let progress = try #require(try await store.progress(of: broadcast, at: .start + .seconds(40)))
      #expect(progress.finishedPages == 7 && progress.recentPages == 0)
      #expect(progress.segments.map(\.pages) == [0..<3, 3..<6, 6..<10])
      #expect(progress.segments.map(\.finishedPages) == [2, 2, 3])
    },
    Self("reservations of all workers are sequential") { store in
      let broadcast = BroadcastID(hub: store.hub, send: .random())
      _ = try await store.plan(broadcast, pages: 2, at: .start)
      #expect(try await store.reserve(50, of: broadcast, perSecond: 100, at: .start) == .start)
      #expect(try await store.reserve(50, of: broadcast, perSecond: 100, at: .start) == .start + .milliseconds(500))
      // Unused time is lost.
      #expect(
        try await store.reserve(10, of: broadcast, perSecond: 100, at: .start + .seconds(9)) == .start + .seconds(9))
      let moments = try await withThrowingTaskGroup(of: UnixTime.self) { group in
        for _ in 0..<20 {
          group.addTask { try await store.reserve(5, of: broadcast, perSecond: 100, at: .start + .seconds(9)) }
        }
        return try await group.reduce(into: Set<UnixTime>()) { $0.insert($1) }
      }
      #expect(moments == Set((2...21).map { UnixTime.start + .seconds(9) + .milliseconds(50 * $0) }))
      // A worker whose clock is an hour ahead delays the others by no more than the horizon of reservations.
      let ahead = UnixTime.start + .seconds(3600)
      #expect(try await store.reserve(5, of: broadcast, perSecond: 100, at: ahead) == ahead)
      let after = UnixTime.start + .seconds(20)
      #expect(try await store.reserve(5, of: broadcast, perSecond: 100, at: after) == after)
    },
  ]
}

extension WorkerRegistryConformance {
  /// Push quotas shared by all workers.
  static let quotas: [Self] = [
    Self("reservations of all workers are sequential, a minute's quota in 61 seconds") { store in
      let quota = PushQuota(hub: store.hub, platform: .fcm, perMinute: 6100)
      #expect(try await store.reserve(25, of: quota, at: .start) == .start)
      #expect(try await store.reserve(10, of: quota, at: .start) == .start + .milliseconds(250))
      #expect(try await store.reserve(1, of: quota, at: .start + .milliseconds(100)) == .start + .milliseconds(350))
      // Unused time is lost.
      #expect(try await store.reserve(5, of: quota, at: .start + .seconds(9)) == .start + .seconds(9))
      let moments = try await withThrowingTaskGroup(of: UnixTime.self) { group in
        for _ in 0..<20 { group.addTask { try await store.reserve(5, of: quota, at: .start + .seconds(9)) } }
        return try await group.reduce(into: Set<UnixTime>()) { $0.insert($1) }
      }
      #expect(moments == Set((1...20).map { UnixTime.start + .seconds(9) + .milliseconds(50 * $0) }))
    },
    Self("each hub and platform has its own quota") { store in
      let other = try #require(HubName("other"))
      for quota in [
        PushQuota(hub: store.hub, platform: .fcm, perMinute: 60),
        PushQuota(hub: store.hub, platform: .wns, perMinute: 60),
        PushQuota(hub: other, platform: .fcm, perMinute: 60),
      ] {
        #expect(try await store.reserve(1, of: quota, at: .start) == .start)
      }
    },
    Self("a clock that was set back does not stop reservations") { store in
      let quota = PushQuota(hub: store.hub, platform: .fcm, perMinute: 60)
      let late = try await store.reserve(1, of: quota, at: .start + .seconds(3600))
      let first = try await store.reserve(1, of: quota, at: .start)
      let second = try await store.reserve(1, of: quota, at: .start)
      #expect(late == .start + .seconds(3600) && first == .start && second > first)
    },
  ]
}
