import FanfareCore
import Support
import Testing

@testable import fanfare

@Suite struct ReplaySelectionTests {
  private static let id = ReplayID(high: 7, low: 7)
  private static let hour = UnixTime(milliseconds: 1000)..<UnixTime(milliseconds: 2000)

  private func send(
    _ user: String = "bob", at time: Int64 = 1500, content: Content = Content(message: Message(body: "x"))
  ) -> SendRequest {
    SendRequest(id: .random(), acceptedAt: UnixTime(milliseconds: time), audience: .user(user), content: content)
  }

  private func status(
    of send: SendRequest, _ outcomes: [(Platform, DeviceResult.Outcome)], part: Int = 0, parts: Int = 1,
    attempt: DispatchID? = nil, state: StatusRecord.State = .settled, counts: OutcomeCounts = OutcomeCounts(),
    after seconds: Int64 = 0
  ) -> StatusRecord {
    StatusRecord(
      send: send.id, hub: send.hub, part: part, parts: parts, attempt: attempt, state: state, sender: nil,
      audience: send.audience,
      acceptedAt: send.acceptedAt, settledAt: send.acceptedAt + .seconds(seconds),
      devices: outcomes.map { platform, outcome in
        DeviceResult(registration: .random(), platform: platform, outcome: outcome, reason: "", status: 0, attempts: 1)
      },
      counts: counts)
  }

  @Test func sendsInRangeAreReplayedOnceWithTheirIds() {
    var selection = ReplaySelection(accepted: Self.hour)
    let sends = [send(at: 999), send(at: 1000), send(at: 1999), send(at: 2000)]
    let replayed = (sends + sends).compactMap { selection.replay($0, by: Self.id) }
    #expect(replayed.map(\.id) == [sends[1].id, sends[2].id])
    #expect(replayed.allSatisfy { $0.replay == Self.id && $0.acceptedAt >= Self.hour.lowerBound })
    #expect(replayed.map(\.identity) != replayed.map(\.id))
    // A replay is not replayed: its original is in the log or too old.
    var another = ReplaySelection(accepted: Self.hour)
    #expect(another.replay(replayed[0], by: .random()) == nil)
  }

  @Test func waitingSendIsNotReplayed() {
    var selection = ReplaySelection(accepted: Self.hour)
    let waiting = send()
    selection.noteWaiting(SendKey(hub: waiting.hub, id: waiting.id))
    #expect(selection.replay(waiting, by: Self.id) == nil)
  }

  @Test func userAndPlatformLimitReplay() {
    var selection = ReplaySelection(accepted: Self.hour, platform: .fcm, user: "bob")
    #expect(selection.replay(send("carol"), by: Self.id) == nil)
    #expect(selection.replay(send("bob"), by: Self.id)?.platforms == PlatformSet(.fcm))
    #expect(selection.replay(send("bob", content: Content.of(wns: "<toast/>")), by: Self.id) == nil)
  }

  @Test func failedOnlyReplaysFailedPlatforms() {
    var selection = ReplaySelection(accepted: Self.hour, failedOnly: true)
    let (delivered, mixed, expired, unknown, mended) = (send(), send(), send(), send(), send())
    selection.note(status(of: delivered, [(.apns, .delivered), (.fcm, .rejected), (.wns, .deviceGone)]))
    selection.note(status(of: mixed, [(.apns, .delivered), (.fcm, .failed), (.fcm, .delivered), (.wns, .unconfirmed)]))
    selection.note(status(of: expired, [], state: .expired))
    selection.note(status(of: mended, [(.apns, .delivered), (.fcm, .failed)]))
    selection.note(status(of: mended, [(.fcm, .delivered)]))
    #expect(selection.replay(delivered, by: Self.id) == nil)
    #expect(selection.replay(mixed, by: Self.id)?.platforms == [PlatformSet(.fcm), PlatformSet(.wns)])
    #expect(selection.replay(expired, by: Self.id)?.platforms == .all)
    #expect(selection.replay(unknown, by: Self.id)?.platforms == .all)
    #expect(selection.replay(mended, by: Self.id) == nil)
  }

  /// Users in different hubs may have the same name.
  @Test func hubLimitsReplay() throws {
    let other = SendRequest(
      id: .random(), hub: try #require(HubName("other")), acceptedAt: UnixTime(milliseconds: 1500),
      audience: .user("bob"),
      content: Content(message: Message(body: "x")))
    var selection = ReplaySelection(accepted: Self.hour, user: "bob", hub: .default)
    #expect(selection.replay(other, by: Self.id) == nil)
    #expect(selection.replay(send("bob"), by: Self.id) != nil)
  }

  /// The outcomes of a page are counts; the page lists no devices here.
  @Test func completedBroadcastIsNotReplayed() {
    func page(
      _ part: Int, _ platform: Platform, _ outcome: DeviceResult.Outcome, of send: SendRequest, attempt: DispatchID
    )
      -> StatusRecord
    {
      var counts = OutcomeCounts()
      counts.add(500, to: .init(platform, outcome))
      return status(of: send, [], part: part, parts: 2, attempt: attempt, counts: counts)
    }
    var selection = ReplaySelection(accepted: Self.hour, failedOnly: true)
    let (mended, half) = (send(), send())
    for (send, second) in [(mended, DeviceResult.Outcome.delivered), (half, .failed)] {
      let (first, again) = (DispatchID.random(), DispatchID.random())
      selection.note(page(0, .apns, .failed, of: send, attempt: first))
      selection.note(page(1, .fcm, .failed, of: send, attempt: first))
      selection.note(page(0, .apns, .delivered, of: send, attempt: again))
      selection.note(page(1, .fcm, second, of: send, attempt: again))
    }
    #expect(selection.replay(mended, by: Self.id) == nil)
    #expect(selection.replay(half, by: Self.id)?.platforms == PlatformSet(.fcm))
  }

  /// The status records of one send may be in several partitions, which are read in any order.
  @Test func latestStatusCountsInAnyReadingOrder() {
    let (mended, broken) = (send(), send())
    let attempts = (DispatchID.random(), DispatchID.random())
    let records = [
      status(of: mended, [(.apns, .delivered), (.fcm, .failed)], after: 1),
      status(of: mended, [(.fcm, .delivered)], after: 2),
      status(of: broken, [(.fcm, .delivered)], part: 0, parts: 2, attempt: attempts.0, after: 1),
      status(of: broken, [(.wns, .failed)], part: 1, parts: 2, attempt: attempts.0, after: 3),
      status(of: broken, [(.fcm, .failed)], part: 0, parts: 2, attempt: attempts.1, after: 4),
      status(of: broken, [(.wns, .delivered)], part: 1, parts: 2, attempt: attempts.1, after: 5),
    ]
    for records in [records, records.reversed()] {
      var selection = ReplaySelection(accepted: Self.hour, failedOnly: true)
      for record in records { selection.note(record) }
      #expect(selection.replay(mended, by: Self.id) == nil)
      #expect(selection.replay(broken, by: Self.id)?.platforms == PlatformSet(.fcm))
    }
  }

  @Test(arguments: [false, true]) func cancelledSendsAreSkippedAndCounted(failedOnly: Bool) {
    var selection = ReplaySelection(accepted: Self.hour, user: "bob", failedOnly: failedOnly)
    let (single, broadcast, others) = (send(), send(), send("carol"))
    let attempt = DispatchID.random()
    for part in [1, 0] {
      let state: StatusRecord.State = part == 0 ? .cancelled : .settled
      selection.note(status(of: broadcast, [(.fcm, .failed)], part: part, parts: 2, attempt: attempt, state: state))
    }
    for send in [single, others] { selection.note(status(of: send, [], state: .cancelled)) }
    for send in [single, broadcast, others, broadcast] { #expect(selection.replay(send, by: Self.id) == nil) }
    #expect(selection.cancelled == (failedOnly ? 1 : 2))
  }

  /// `ë` as one code point and as two: two different users.
  @Test func usersAreComparedByTheirBytes() {
    var selection = ReplaySelection(accepted: Self.hour, user: "zo\u{EB}")
    #expect(selection.replay(send("zoe\u{308}"), by: Self.id) == nil)
    #expect(selection.replay(send("zo\u{EB}"), by: Self.id) != nil)
  }

  @Test func partsOfOneAttemptAreCombined() {
    var selection = ReplaySelection(accepted: Self.hour, failedOnly: true)
    let (large, attempt) = (send(), DispatchID.random())
    selection.note(status(of: large, [(.fcm, .failed)], part: 0, parts: 2, attempt: attempt))
    selection.note(status(of: large, [(.fcm, .delivered)], part: 1, parts: 2, attempt: attempt))
    #expect(selection.replay(large, by: Self.id)?.platforms == PlatformSet(.fcm))
  }
}
