import FanfareCore
import Support
import Testing

@testable import Ledger

@Suite(.everyStore, .timeLimit(.minutes(2))) struct RetentionTests {
  private let day = Duration.seconds(86_400)

  private func store(_ directory: TemporaryDirectory, _ clock: ManualClock) throws -> any LedgerStore {
    try TestStore.make(directory, retention: day * 2, clock: clock)
  }

  /// Sets the clock and writes a record of that time, because age is measured by the records' times.
  private func advance(to time: UnixTime, _ store: any LedgerStore, _ clock: ManualClock) async throws {
    clock.set(time)
    try await store.write([.send(Samples.send(SendID.timeOrdered(at: time), at: time))])
    await store.removeExpired()
  }

  @Test func oldSettledSendsAreRemovedAndTotalsStay() async throws {
    let directory = try TemporaryDirectory()
    let clock = ManualClock(at: .start)
    let store = try store(directory, clock)
    let (settled, open, several) = (SendID.random(), SendID.random(), SendID.random())
    try await store.write([
      .send(Samples.send(settled)), .status(Samples.status(settled, devices: [Samples.device()])),
      .send(Samples.send(open)),
      .send(Samples.send(several)), .status(Samples.status(several, part: 0, of: 2)),
      .status(Samples.status(several, part: 1, of: 2)),
    ])
    try await advance(to: .start + day, store, clock)
    #expect(try await store.report(of: settled, hub: .default) != nil)
    try await advance(to: .start + day * 3, store, clock)
    #expect(try await store.report(of: settled, hub: .default) == nil)
    #expect(try await store.report(of: several, hub: .default) == nil)
    #expect(try await store.report(of: open, hub: .default)?.state == .accepted)
    let totals = try await store.totals(hub: .default)
    #expect((totals.accepted, totals.settled) == (5, 2))
    #expect(totals.devices == [.apns: [.delivered: 1]])
    // No send can still settle after this time.
    try await advance(to: .start + Retention.open + day, store, clock)
    #expect(try await store.report(of: open, hub: .default) == nil)
  }

  @Test func oldLogIsRecordedLikeANewOne() async throws {
    let directory = try TemporaryDirectory()
    let clock = ManualClock(at: .start + day * 100)
    let store = try store(directory, clock)
    let id = SendID.random()
    let status = Samples.status(id, devices: [Samples.device()])
    try await store.write([.send(Samples.send(id)), .status(status)])
    await store.removeExpired()
    // By the log's own times the send is not expired: it is still known, and not counted again.
    try await store.write([.status(status), .send(Samples.send(id))])
    #expect(try await store.totals(hub: .default).accepted == 1)
    #expect(try await store.report(of: id, hub: .default)?.state == .settled)
  }

  @Test func recordFromTheFutureRemovesNothing() async throws {
    let directory = try TemporaryDirectory()
    let clock = ManualClock(at: .start)
    let store = try store(directory, clock)
    let id = SendID.random()
    try await store.write([.send(Samples.send(id)), .status(Samples.status(id))])
    try await store.write([.send(Samples.send(.random(), at: .start + day * 1000))])
    await store.removeExpired()
    #expect(try await store.report(of: id, hub: .default) != nil)
  }
}
