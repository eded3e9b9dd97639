import FanfareCore
import Testing

extension WorkerRegistryConformance {
  /// Scheduled sends.
  static let schedule: [Self] = [
    Self("due sends are leased oldest first, to one taker until the lease ends") { store in
      let sends = (0..<5).map { held(store.hub, due: .start + .seconds(10 - $0)) }
      let (one, other) = (LeaseID.random(), LeaseID.random())
      #expect(try await store.nextDue() == nil)
      try await store.hold(sends, at: .start)
      #expect(try await store.nextDue() == sends[4].due)
      #expect(
        try await store.takeDue(9, for: one, until: .start + .seconds(30), at: .start + .milliseconds(5_999)) == [])
      let now = UnixTime.start + .seconds(8)
      #expect(try await store.takeDue(2, for: one, until: now + .seconds(30), at: now) == [sends[4], sends[3]])
      #expect(try await store.takeDue(9, for: other, until: now + .seconds(60), at: now) == [sends[2]])
      #expect(try await store.nextDue() == sends[1].due)
      // After the lease the second taker gets the unfinished sends, and the first can no longer finish them.
      try await store.finish([sends[4]], of: one, at: now)
      let later = now + .seconds(30)
      let taken = try await store.takeDue(9, for: other, until: later + .seconds(30), at: later)
      #expect(taken == [sends[1], sends[0], sends[3].takenBefore])
      try await store.finish([sends[3]], of: one, at: later)
      try await store.release([sends[3]], of: one, until: later)
      #expect(try await store.takeDue(9, for: one, until: later + .seconds(30), at: later) == [])
      try await store.finish(taken + [sends[2]], of: other, at: later)
      #expect(try await store.nextDue() == nil)
      #expect(try await store.scheduled(sends[3].send.id, hub: store.hub)?.state == .fired)
    },
    Self("released sends can be taken again from the given moment on") { store in
      let send = held(store.hub, due: .start)
      let lease = LeaseID.random()
      try await store.hold([send], at: .start)
      let taken = try await store.takeDue(1, for: lease, until: .start + .seconds(30), at: .start)
      #expect(taken == [send])
      try await store.release(taken, of: lease, until: .start + .seconds(2))
      #expect(try await store.nextDue() == .start + .seconds(2))
      #expect(try await store.scheduled(send.send.id, hub: store.hub) == send)
      #expect(
        try await store.takeDue(1, for: .random(), until: .start + .seconds(30), at: .start + .seconds(2)) == [send])
    },
    Self("a send with an abandoned lease counts as fired") { store in
      let sends = [held(store.hub, due: .start), held(store.hub, due: .start + .seconds(1))]
      try await store.hold(sends, at: .start)
      let now = UnixTime.start + .seconds(5)
      _ = try await store.takeDue(1, for: .random(), until: now, at: now)
      let lease = LeaseID.random()
      let taken = try await store.takeDue(2, for: lease, until: now + .seconds(30), at: now)
      #expect(Set(taken) == [sends[0].takenBefore, sends[1]])
      try await store.release(taken, of: lease, until: now + .seconds(1))
      #expect(try await steer(sends[0].send.id, to: .cancelled, in: store, at: now) == .fired)
      #expect(try await steer(sends[1].send.id, to: .cancelled, in: store, at: now) == .cancelled)
      // Nor is it purged.
      let (last, later) = (LeaseID.random(), now + .seconds(1))
      #expect(try await store.takeDue(2, for: last, until: later + .seconds(30), at: later) == [sends[0].takenBefore])
      try await store.finish([sends[0].takenBefore], of: last, at: later)
      #expect(try await store.nextDue() == nil)
    },
    Self("a send is held once under its id and hub, completely") { store in
      let other = try #require(HubName("other"))
      let id = SendID.random()
      let first = held(store.hub, id: id, due: .start + .seconds(60), body: "one \u{1F514} \"quoted\"")
      let elsewhere = held(other, id: id, due: .start + .seconds(90))
      try await store.hold([first, elsewhere], at: .start)
      try await store.hold([held(store.hub, id: id, due: .start, body: "two")], at: .start)
      #expect(try await store.scheduled(id, hub: store.hub) == first)
      #expect(try await store.scheduled(id, hub: other) == elsewhere)
      #expect(try await store.scheduled(.random(), hub: store.hub) == nil)
      let lease = LeaseID.random()
      _ = try await store.takeDue(1, for: lease, until: .start + .seconds(99), at: .start + .seconds(60))
      try await store.finish([first], of: lease, at: .start + .seconds(60))
      // Nor after it was fired.
      try await store.hold([held(store.hub, id: id, due: .start + .seconds(70))], at: .start)
      #expect(try await store.nextDue() == elsewhere.due)
    },
    Self("waiting sends can be paused, resumed and cancelled, leased ones cannot") { store in
      let send = held(store.hub, due: .start + .seconds(1))
      let (id, now) = (send.send.id, UnixTime.start + .seconds(5))
      try await store.hold([send], at: .start)
      #expect(try await steer(id, to: .paused, in: store, at: now) == .paused)
      #expect(try await store.nextDue() == nil)
      #expect(try await store.takeDue(1, for: .random(), until: now, at: now) == [])
      #expect(try await steer(id, to: .held, in: store, at: now) == .held)
      let lease = LeaseID.random()
      #expect(try await store.takeDue(1, for: lease, until: now + .seconds(30), at: now) == [send])
      for state in [ScheduledSend.State.paused, .held, .cancelled] {
        #expect(try await steer(id, to: state, in: store, at: now) == .fired)
      }
      try await store.release([send], of: lease, until: now)
      #expect(try await steer(id, to: .cancelled, in: store, at: now) == .cancelled)
      for state in [ScheduledSend.State.paused, .held, .cancelled] {
        #expect(try await steer(id, to: state, in: store, at: now) == .cancelled)
      }
      #expect(try await store.nextDue() == nil)
      #expect(try await store.control(.random(), hub: store.hub, to: .paused, at: now) == nil)
    },
    Self("waiting sends are listed, the latest scheduled first") { store in
      let other = try #require(HubName("other"))
      let sends = (0..<6).map { number in
        held(
          store.hub, due: .start + .seconds(100 + number), sender: number % 2 == 0 ? "ann" : "ben",
          audience: number < 3 ? .user("ben") : .everyone, scheduledAt: .start + .seconds(number / 2))
      }
      try await store.hold(sends + [held(other, due: .start)], at: .start)
      let newest = sends.sorted { ($0.scheduledAt, $0.send.id) > ($1.scheduledAt, $1.send.id) }
      var query = SendQuery(hub: store.hub, limit: 4)
      #expect(try await store.waiting(query) == Array(newest[..<4]))
      query.after = SendQuery.Position(acceptedAt: newest[3].scheduledAt, send: newest[3].send.id)
      #expect(try await store.waiting(query) == Array(newest[4...]))
      #expect(
        try await store.waiting(SendQuery(hub: store.hub, sender: "ann")) == newest.filter { $0.send.sender == "ann" })
      let ben = try await store.waiting(SendQuery(hub: store.hub, user: "ben"))
      #expect(ben == newest.filter { $0.send.sender == "ben" || $0.send.audience == .user("ben") })
      let both = try await store.waiting(SendQuery(hub: store.hub, sender: "ann", user: "ben"))
      #expect(both == newest.filter { $0.send.sender == "ann" && $0.send.audience == .user("ben") })
      _ = try await store.control(sends[0].send.id, hub: store.hub, to: .paused, at: .start)
      _ = try await store.control(sends[1].send.id, hub: store.hub, to: .cancelled, at: .start)
      let states = try await store.waiting(SendQuery(hub: store.hub)).map { [$0.send.id: $0.state] }
      #expect(states.count == 5 && states.contains([sends[0].send.id: .paused]))
    },
    Self("concurrent takers get different sends") { store in
      let sends = (0..<60).map { held(store.hub, due: .start + .milliseconds($0)) }
      try await store.hold(sends, at: .start)
      let now = UnixTime.start + .seconds(1)
      let taken = try await withThrowingTaskGroup(of: [ScheduledSend].self) { group in
        for _ in 0..<12 {
          group.addTask { try await store.takeDue(7, for: .random(), until: now + .seconds(30), at: now) }
        }
        return try await group.reduce(into: [ScheduledSend]()) { $0 += $1 }
      }
      #expect(taken.count == 60 && Set(taken) == Set(sends))
    },
  ]

  private static func steer(
    _ send: SendID, to state: ScheduledSend.State, in store: any WorkerRegistry, at now: UnixTime
  ) async throws -> ScheduledSend.State? {
    try await store.control(send, hub: store.hub, to: state, at: now)?.state
  }

  private static func held(
    _ hub: HubName, id: SendID = .random(), due: UnixTime, sender: String? = "ann", audience: Audience = .user("bob"),
    body: String = "b", scheduledAt: UnixTime = .start
  ) -> ScheduledSend {
    ScheduledSend(
      send: SendRequest(
        id: id, hub: hub, sender: sender, acceptedAt: due, audience: audience,
        content: Content(message: Message(body: body)),
        timeToLive: 60, collapseKey: "k"), scheduledAt: scheduledAt)
  }
}

extension ScheduledSend {
  /// The same send, as taken after an abandoned lease.
  fileprivate var takenBefore: Self { Self(send: send, scheduledAt: scheduledAt, state: state, mayBeEnqueued: true) }
}
