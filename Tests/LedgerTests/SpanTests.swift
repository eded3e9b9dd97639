import FanfareCore
import Support
import Testing

@testable import Ledger

/// Records that stand for many pages of a broadcast, for every store.
@Suite(.everyStore, .timeLimit(.minutes(2))) struct SpanTests {
  private let directory: TemporaryDirectory
  private let store: any LedgerStore
  private let id = SendID.timeOrdered(at: .start)
  private let attempt = DispatchID.random()

  init() throws {
    directory = try TemporaryDirectory()
    store = try TestStore.make(directory)
  }

  private func record(
    _ range: Range<Int>, of parts: Int, by attempt: DispatchID? = nil, devices: [DeviceResult] = [],
    settledAfter: Duration = .seconds(1)
  ) -> Sample {
    .status(
      StatusRecord(
        send: id, hub: .default, part: range.lowerBound, parts: parts, span: range.count,
        attempt: attempt ?? self.attempt, state: devices.isEmpty ? .cancelled : .settled, sender: "alice",
        audience: .everyone, acceptedAt: .start, settledAt: .start + settledAfter, devices: devices))
  }

  @Test func recordOfManyPagesIsOneEntry() async throws {
    let batch = store.batch([record(0..<10_000, of: 10_000_000)])
    #expect(batch.entries.count == 1)
    #expect(try await store.write(batch) == 0)
    #expect(try await store.report(of: id, hub: .default)?.state == .accepted)
  }

  @Test func eachPageCountsOnceWhicheverRecordsTellOfIt() async throws {
    let device = Samples.device()
    try await store.write([record(4..<5, of: 30, devices: [device]), record(20..<21, of: 30, devices: [device])])
    let spans = [record(0..<10, of: 30), record(8..<25, of: 30)]
    for _ in 0..<2 { #expect(try await store.write(spans) == 0) }
    // A page that a span has counted is a duplicate, once.
    let late = record(9..<10, of: 30, devices: [device])
    #expect(try await store.write([late]) == 1)
    #expect(try await store.write([late]) == 0)
    #expect(try await store.report(of: id, hub: .default)?.state == .accepted)
    try await store.write([record(25..<30, of: 30, settledAfter: .seconds(9))])
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect(report.state == .cancelled && report.settledAt == .start + .seconds(9))
    #expect(report.counts == [.apns: [.delivered: 2]])
    // All of it again, after the send has settled.
    try await store.write(spans)
    let totals = try await store.totals(hub: .default)
    #expect((totals.settled, totals.cancelled, totals.duplicates) == (1, 1, 1))
    #expect(totals.devices == report.counts)
  }

  @Test func spanThatIsWhollyKnownIsOneDuplicate() async throws {
    try await store.write([record(0..<20, of: 100)])
    for expected in [1, 0] { #expect(try await store.write([record(5..<15, of: 100)]) == expected) }
  }

  @Test func spansOfAnotherAttemptDoNotCount() async throws {
    try await store.write([record(0..<9, of: 10), record(0..<10, of: 10, by: .random())])
    #expect(try await store.report(of: id, hub: .default)?.state == .cancelled)
    #expect(try await store.totals(hub: .default).duplicates == 1)
  }

  /// Random ranges in any order settle the send exactly when they cover all of its pages.
  @Test(arguments: [UInt64(1), 2, 3, 4]) func randomRangesSettleTheSendWhenTheyCoverIt(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let parts = Int.random(in: 20...60, using: &generator)
    var covered: Set<Int> = []
    while covered.count < parts {
      let first = Int.random(in: 0..<parts, using: &generator)
      let range = first..<Int.random(in: first + 1...min(parts, first + 12), using: &generator)
      try await store.write([record(range, of: parts)])
      covered.formUnion(range)
      let state = try await store.report(of: id, hub: .default)?.state
      #expect(state == (covered.count == parts ? .cancelled : .accepted))
    }
  }
}
