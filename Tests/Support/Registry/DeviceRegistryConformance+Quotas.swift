import FanfareCore
import Testing

extension DeviceRegistryConformance {
  /// What all workers together may hand to a push service.
  static let quotas: [Self] = [
    Self("reservations of all workers follow one another, a minute's worth in 61 seconds") { store in
      let quota = PushQuota(hub: store.hub, platform: .fcm, perMinute: 6100)
      #expect(try await store.reserve(25, of: quota, at: .start) == .start)
      #expect(try await store.reserve(10, of: quota, at: .start) == .start + .milliseconds(250))
      #expect(try await store.reserve(1, of: quota, at: .start + .milliseconds(100)) == .start + .milliseconds(350))
      // What was not asked for in time is lost.
      #expect(try await store.reserve(5, of: quota, at: .start + .seconds(9)) == .start + .seconds(9))
      let moments = try await withThrowingTaskGroup(of: UnixTime.self) { group in
        for _ in 0..<20 { group.addTask { try await store.reserve(5, of: quota, at: .start + .seconds(9)) } }
        return try await group.reduce(into: Set<UnixTime>()) { $0.insert($1) }
      }
      #expect(moments == Set((1...20).map { UnixTime.start + .seconds(9) + .milliseconds(50 * $0) }))
    },
    Self("each hub and each platform has a quota of its own") { store in
      let other = try #require(HubName("other"))
      for quota in [
        PushQuota(hub: store.hub, platform: .fcm, perMinute: 60),
        PushQuota(hub: store.hub, platform: .wns, perMinute: 60),
        PushQuota(hub: other, platform: .fcm, perMinute: 60),
      ] {
        #expect(try await store.reserve(1, of: quota, at: .start) == .start)
      }
    },
    Self("a clock that was set back does not stop what is limited") { store in
      let quota = PushQuota(hub: store.hub, platform: .fcm, perMinute: 60)
      let late = try await store.reserve(1, of: quota, at: .start + .seconds(3600))
      let first = try await store.reserve(1, of: quota, at: .start)
      let second = try await store.reserve(1, of: quota, at: .start)
      #expect(late == .start + .seconds(3600) && first == .start && second > first)
    },
  ]
}
