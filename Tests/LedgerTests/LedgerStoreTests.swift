import FanfareCore
import RDKafka
import Support
import Testing

@testable import Ledger

/// The contract of `LedgerStore`, for every store.
@Suite(.everyStore, .timeLimit(.minutes(2))) struct LedgerStoreTests {
  private let directory: TemporaryDirectory
  private let store: any LedgerStore
  private let id = SendID.timeOrdered(at: .start)

  init() throws {
    directory = try TemporaryDirectory()
    store = try TestStore.make(directory)
  }

  @Test func acceptedSendIsReported() async throws {
    try await store.write([.send(Samples.send(id))])
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect(report.state == .accepted)
    #expect(report.sender == "alice")
    #expect(report.acceptedAt == .start)
    #expect(report.settledAt == nil)
    #expect(report.counts.isEmpty)
    let totals = try await store.totals(hub: .default)
    #expect(totals.accepted == 1)
    #expect(totals.inFlight == 1)
  }

  @Test func failedTransactionChangesNothing() async throws {
    let end = Sample.status(Samples.status(id, devices: [Samples.device()]))
    try await store.write([.send(Samples.send(id))])
    try await TestStore.execute(
      directory, sqlite: "CREATE TRIGGER refused BEFORE INSERT ON device_totals BEGIN SELECT RAISE(ABORT, 'disk'); END",
      postgreSQL: "ALTER TABLE ledger_device_totals ADD CONSTRAINT refused CHECK (devices < 0) NOT VALID")
    await #expect(throws: LedgerError.self) { try await store.write([end]) }
    #expect(try await store.report(of: id, hub: .default)?.state == .accepted)
    #expect(try await store.totals(hub: .default).settled == 0)
    try await TestStore.execute(
      directory, sqlite: "DROP TRIGGER refused",
      postgreSQL: "ALTER TABLE ledger_device_totals DROP CONSTRAINT refused")
    try await store.write([end])
    #expect(try await store.totals(hub: .default).devices == [.apns: [.delivered: 1]])
  }

  @Test func settledSendReportsEveryDevice() async throws {
    let devices = [
      Samples.device(), Samples.device(.fcm, .deviceGone, number: 2), Samples.device(.apns, .delivered, number: 3),
    ]
    try await store.write([.send(Samples.send(id))])
    try await store.write([.status(Samples.status(id, devices: devices))])
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect(report.state == .settled)
    #expect(report.settledAt == .start + .seconds(1))
    #expect(report.devices == devices && report.times == SendTimes())
    #expect(report.counts == [.apns: [.delivered: 2], .fcm: [.deviceGone: 1]])
    let totals = try await store.totals(hub: .default)
    #expect((totals.accepted, totals.settled, totals.inFlight) == (1, 1, 0))
    #expect(totals.devices == report.counts)
  }

  private static let times = SendTimes(
    consumed: .start + .milliseconds(-4), lookedUp: .start + .milliseconds(7), pushed: .start + .milliseconds(8),
    answered: .start + .milliseconds(990))

  /// With the send in one batch and after it; with devices that have times, that have none, and that are only counted.
  @Test(arguments: [true, false], [1, 3, 5])
  func timesOfStagesAreReported(inOneBatch: Bool, deviceCount: Int) async throws {
    let devices = (0..<deviceCount).map { number in
      var device = Samples.device(number: UInt64(number))
      if deviceCount > 1, number != 1 { device.pushedAt = .start + .milliseconds(number) }
      if number == 2 { device.answeredAt = .start + .seconds(3) }
      return device
    }
    let records = [
      Sample.send(Samples.send(id)), .status(Samples.status(id, devices: devices, times: Self.times)),
    ]
    if inOneBatch {
      try await store.write(records)
    } else {
      for record in records { try await store.write([record]) }
    }
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect(report.times == Self.times)
    #expect(report.devices == (deviceCount <= store.maximumDevices ? devices : nil))
    #expect(report.counts == [.apns: [.delivered: deviceCount]])
    #expect(try await store.list(SendQuery(hub: .default)).sends.map(\.id) == [id])
  }

  @Test func sendOfSeveralItemsHasTheFirstTimesAndTheLastAnswer() async throws {
    let attempt = DispatchID.random()
    func part(_ number: Int, _ times: SendTimes) -> Sample {
      .status(
        Samples.status(
          id, part: number, of: 3, attempt: attempt, devices: [Samples.device(number: UInt64(number))], times: times))
    }
    try await store.write([.send(Samples.send(id))])
    try await store.write([part(2, SendTimes(consumed: .start + .seconds(1), answered: .start))])
    #expect(try await store.report(of: id, hub: .default)?.times.consumed == .start + .seconds(1))
    try await store.write([part(0, Self.times), part(1, SendTimes())])
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect(report.state == .settled && report.times == Self.times)
    // A redriven dead letter has the times of its later result.
    let other = SendID.timeOrdered(at: .start)
    try await store.write([.send(Samples.send(other)), .status(Samples.status(other, state: .deadLettered))])
    try await store.write([.status(Samples.status(other, devices: [Samples.device()], times: Self.times))])
    #expect(try await store.report(of: other, hub: .default)?.times == Self.times)
  }

  @Test func batchSettlesSendsOfSeveralDays() async throws {
    let times = [
      UnixTime.start, .start, .start + .seconds(86_400), .start + .seconds(2 * 86_400), .start + .seconds(2 * 86_400),
    ]
    let sends = times.map { Samples.send(.timeOrdered(at: $0), at: $0) }
    let ends = sends.map { Sample.status(Samples.status($0.id, at: $0.acceptedAt, devices: [Samples.device()])) }
    try await store.write(sends.map { .send($0) })
    // One send has settled before; another is known only by its status record.
    try await store.write([ends[4]])
    try await store.write(ends + [.status(Samples.status(id))])
    for send in sends { #expect(try await store.report(of: send.id, hub: .default)?.state == .settled) }
    let totals = try await store.totals(hub: .default)
    #expect((totals.accepted, totals.settled, totals.unannounced, totals.duplicates) == (6, 6, 1, 0))
    #expect(totals.devices == [.apns: [.delivered: 5]])
  }

  @Test func failuresAreCountedByReason() async throws {
    func failed(_ number: UInt64, _ reason: String = "BadDeviceToken") -> DeviceResult {
      DeviceResult(
        registration: RegistrationID(high: 7, low: number), platform: .apns, outcome: .rejected, reason: reason,
        status: 400, attempts: 1)
    }
    func failures(of send: SendID) async throws -> [String] {
      let report = try #require(try await store.report(of: send, hub: .default))
      return report.failures.entries.map {
        "\($0.kind.platform.name) \($0.kind.outcome) \($0.kind.reason) \($0.count)"
      }
    }
    // Few devices, more than are kept in one item, and those of an open send of several items.
    let (large, open) = (SendID.random(), SendID.random())
    let devices = [failed(1), failed(2), failed(3, "PayloadTooLarge"), Samples.device(), Samples.device(.fcm)]
    let attempt = DispatchID.random()
    try await store.write([
      .send(Samples.send(id)), .status(Samples.status(id, devices: [Samples.device(), failed(5)])),
      .send(Samples.send(large)), .status(Samples.status(large, devices: devices)), .send(Samples.send(open)),
    ])
    for part in 0..<2 {
      try await store.write([.status(Samples.status(open, part: part, of: 3, attempt: attempt, devices: devices))])
    }
    #expect(try await failures(of: id) == ["apns rejected BadDeviceToken 1"])
    let expected = ["apns rejected BadDeviceToken 2", "apns rejected PayloadTooLarge 1"]
    #expect(try await failures(of: large) == expected)
    #expect(try await failures(of: open) == ["apns rejected BadDeviceToken 4", "apns rejected PayloadTooLarge 2"])
    try await store.write([.status(Samples.status(open, part: 2, of: 3, attempt: attempt, devices: devices))])
    #expect(try await failures(of: open) == ["apns rejected BadDeviceToken 6", "apns rejected PayloadTooLarge 3"])
  }

  @Test(arguments: [StatusRecord.State.noTarget, .expired, .deadLettered])
  func sendsWithoutDevicesReportTheirState(state: StatusRecord.State) async throws {
    try await store.write([.send(Samples.send(id)), .status(Samples.status(id, state: state))])
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect(report.state.rawValue == state.rawValue)
    #expect(report.devices == [])
    let totals = try await store.totals(hub: .default)
    #expect(totals.settled == 1)
    #expect([totals.noTarget, totals.expired, totals.deadLettered].reduce(0, +) == 1)
  }

  @Test func rereadRecordChangesNothing() async throws {
    let samples: [Sample] = [.send(Samples.send(id)), .status(Samples.status(id, devices: [Samples.device()]))]
    try await store.write(samples)
    let (report, totals) = (try await store.report(of: id, hub: .default), try await store.totals(hub: .default))
    for _ in 0..<3 { #expect(try await store.write(samples + samples.reversed()) == 0) }
    #expect(try await store.report(of: id, hub: .default) == report)
    #expect(try await store.totals(hub: .default) == totals)
    #expect(totals.duplicates == 0)
  }

  @Test func orderOfTheTopicsDoesNotMatter() async throws {
    let status = Samples.status(id, devices: [Samples.device()])
    try await store.write([.status(status)])
    var totals = try await store.totals(hub: .default)
    #expect((totals.accepted, totals.settled, totals.unannounced) == (1, 1, 1))
    #expect(try await store.report(of: id, hub: .default)?.acceptedAt == .start)
    try await store.write([.send(Samples.send(id))])
    let other = try TestStore.make(directory, number: 1)
    try await other.write([.send(Samples.send(id)), .status(status)])
    totals = try await store.totals(hub: .default)
    #expect(totals == (try await other.totals(hub: .default)))
    #expect(totals.unannounced == 0)
    #expect(try await store.report(of: id, hub: .default) == (try await other.report(of: id, hub: .default)))
  }

  @Test func firstOfTwoRecordsOfAnItemCounts() async throws {
    let first = Samples.status(id, devices: [Samples.device()])
    let second = Samples.status(id, settledAfter: .seconds(9), devices: [Samples.device(.apns, .failed)])
    try await store.write([.send(Samples.send(id)), .status(first)])
    #expect(try await store.write([.status(second)]) == 1)
    // A duplicate that is read again is not counted again.
    #expect(try await store.write([.status(second), .status(first)]) == 0)
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect(report.devices == first.devices)
    let totals = try await store.totals(hub: .default)
    #expect(totals.duplicates == 1)
    #expect(totals.devices == [.apns: [.delivered: 1]])
  }

  @Test func redrivenDeadLetterSettlesWithItsLaterResult() async throws {
    let letter = Samples.status(id, state: .deadLettered)
    let end = Samples.status(id, settledAfter: .seconds(9), devices: [Samples.device()])
    try await store.write([.send(Samples.send(id)), .status(letter)])
    #expect(try await store.totals(hub: .default).deadLettered == 1)
    try await store.write([.send(Samples.send(id)), .status(end)])
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect((report.state, report.devices, report.settledAt) == (.settled, end.devices, .start + .seconds(9)))
    #expect(try await store.write([.status(letter), .status(end)]) == 0)
    var totals = try await store.totals(hub: .default)
    #expect((totals.accepted, totals.settled, totals.deadLettered, totals.duplicates) == (1, 1, 0, 1))
    #expect(totals.devices == [.apns: [.delivered: 1]])
    // A result in several parts counts once all of them are written.
    let other = SendID.random()
    let attempt = DispatchID.random()
    try await store.write([.send(Samples.send(other)), .status(Samples.status(other, state: .deadLettered))])
    try await store.write([
      .status(Samples.status(other, part: 0, of: 2, attempt: attempt, devices: [Samples.device()]))
    ])
    #expect(try await store.report(of: other, hub: .default)?.state == .deadLettered)
    try await store.write([
      .status(Samples.status(other, part: 1, of: 2, attempt: attempt, devices: [Samples.device()]))
    ])
    #expect(try await store.report(of: other, hub: .default)?.state == .settled)
    totals = try await store.totals(hub: .default)
    #expect((totals.accepted, totals.settled, totals.deadLettered, totals.duplicates) == (2, 2, 0, 2))
  }

  /// The records come in every order, one by one and as one batch.
  @Test func itemsOfADeadLetteredSendCountAfterARedrive() async throws {
    let attempt = DispatchID.random()
    for (number, order) in Self.permutations(of: [0, 1, 2]).enumerated() {
      for isAtOnce in [false, true] {
        let hub = try #require(HubName("hub-\(number)-\(isAtOnce)"))
        let send = SendID.random()
        let parts = (0..<2).map { part in
          Samples.status(
            send, hub: hub, part: part, of: 2, attempt: attempt,
            devices: [Samples.device(.apns, .delivered, number: UInt64(part))])
        }
        let records = (parts + [Samples.status(send, hub: hub, state: .deadLettered)]).map { Sample.status($0) }
        let samples = [.send(Samples.send(send, hub: hub))] + order.map { records[$0] }
        for batch in isAtOnce ? [samples] : samples.map({ [$0, $0] }) { try await store.write(batch) }
        #expect(try await store.write(samples) == 0)
        let report = try #require(try await store.report(of: send, hub: hub))
        #expect(report.state == .settled, "\(order)")
        #expect(report.devices == parts.flatMap(\.devices))
        let totals = try await store.totals(hub: hub)
        #expect((totals.accepted, totals.settled, totals.deadLettered, totals.duplicates) == (1, 1, 0, 1), "\(order)")
        #expect(totals.devices == [.apns: [.delivered: 2]])
      }
    }
  }

  @Test func hubsAreSeparate() async throws {
    try await store.write([
      .send(Samples.send(id)), .status(Samples.status(id, hub: Samples.otherHub, state: .noTarget)),
    ])
    #expect(try await store.report(of: id, hub: .default)?.state == .accepted)
    #expect(try await store.report(of: id, hub: Samples.otherHub)?.state == .noTarget)
    #expect(try await store.totals(hub: .default).settled == 0)
    #expect(try await store.totals(hub: Samples.otherHub).settled == 1)
    let third = try #require(HubName("third"))
    #expect(try await store.report(of: id, hub: third) == nil)
    #expect(try await store.totals(hub: third) == LedgerTotals())
  }

  @Test func sendOfSeveralItemsSettlesWithTheLast() async throws {
    let attempt = DispatchID.random()
    func part(_ part: Int, _ state: StatusRecord.State, after: Int64) -> Sample {
      .status(
        Samples.status(
          id, part: part, of: 3, attempt: attempt, state: state, settledAfter: .seconds(after),
          devices: state == .settled ? [Samples.device(.apns, .delivered, number: UInt64(part))] : []))
    }
    try await store.write([.send(Samples.send(id)), part(2, .settled, after: 3)])
    #expect(try await store.report(of: id, hub: .default)?.state == .accepted)
    #expect(try await store.totals(hub: .default).inFlight == 1)
    try await store.write([part(0, .noTarget, after: 9), part(2, .settled, after: 3)])
    #expect(try await store.report(of: id, hub: .default)?.settledAt == nil)
    try await store.write([part(1, .settled, after: 1)])
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect(report.state == .settled)
    #expect(report.settledAt == .start + .seconds(9))
    #expect(report.devices?.map(\.registration.low) == [1, 2])
    let totals = try await store.totals(hub: .default)
    #expect((totals.accepted, totals.settled, totals.noTarget, totals.duplicates) == (1, 1, 0, 0))
    #expect(totals.devices == [.apns: [.delivered: 2]])
  }

  @Test func openSendOfSeveralItemsReportsItsProgress() async throws {
    let attempts = [DispatchID.random(), .random()]
    func part(_ part: Int, _ attempt: Int, _ devices: Int) -> Sample {
      .status(
        Samples.status(
          id, part: part, of: 4, attempt: attempts[attempt],
          devices: (0..<devices).map { Samples.device(.fcm, .delivered, number: UInt64(part * 10 + $0)) }))
    }
    try await store.write([.send(Samples.send(id)), part(0, 0, 2), part(2, 0, 3), part(1, 1, 1)])
    let report = try #require(try await store.report(of: id, hub: .default))
    #expect(report.state == .accepted && report.settledAt == nil)
    #expect(report.counts == [.fcm: [.delivered: 5]])
    #expect(report.devices == nil, "results of more devices than the maximum are not kept")
    // Now the other attempt has more items.
    try await store.write([part(0, 1, 1), part(2, 1, 1)])
    #expect(try await store.report(of: id, hub: .default)?.counts == [.fcm: [.delivered: 3]])
    #expect(try await store.totals(hub: .default).devices.isEmpty)
  }

  /// Four attempts at one send: one of two parts, both of two, one of three, and a single one. The records come in
  /// every order, each twice. The send counts the devices of one complete attempt, and settles with it.
  @Test func oneOfSeveralAttemptsCounts() async throws {
    func parts(_ written: Int, of parts: Int, firstDevice: Int) -> [StatusRecord] {
      let attempt = parts > 1 ? DispatchID.random() : nil
      return (0..<written).map { part in
        let devices = (0..<2).map { Samples.device(.apns, .delivered, number: UInt64(firstDevice + part * 2 + $0)) }
        return Samples.status(id, part: part, of: parts, attempt: attempt, devices: devices)
      }
    }
    let attempts = [
      parts(1, of: 2, firstDevice: 0), parts(2, of: 2, firstDevice: 10), parts(1, of: 3, firstDevice: 20),
      parts(1, of: 1, firstDevice: 30),
    ]
    let records = attempts.flatMap { $0 }
    for (number, order) in Self.permutations(of: Array(records.indices)).enumerated() {
      let hub = try #require(HubName("hub-\(number)"))
      let send = SendID.random()
      func sample(_ record: StatusRecord) -> Sample {
        .status(
          Samples.status(
            send, hub: hub, part: record.part, of: record.parts, attempt: record.attempt, devices: record.devices))
      }
      var seen: [Int: Int] = [:]
      var winner: Int?
      for index in order {
        try await store.write([sample(records[index]), sample(records[index])])
        let attempt = try #require(attempts.firstIndex { $0.contains(records[index]) })
        seen[attempt, default: 0] += 1
        if winner == nil, seen[attempt] == records[index].parts { winner = attempt }
        let report = try #require(try await store.report(of: send, hub: hub))
        #expect(report.state == (winner == nil ? .accepted : .settled))
        if let winner { #expect(report.devices == attempts[winner].flatMap(\.devices)) }
        #expect((report.settledAt == nil) == (winner == nil))
      }
      try await store.write(records.reversed().map(sample) + [.send(Samples.send(send, hub: hub))])
      let totals = try await store.totals(hub: hub)
      let counted = winner.map { attempts[$0].flatMap(\.devices).count } ?? 0
      #expect(totals.devices == [.apns: [.delivered: counted]])
      #expect((totals.accepted, totals.settled, totals.unannounced) == (1, 1, 0))
      #expect(totals.duplicates == records.count - counted / 2)
    }
  }

  private static func permutations(of elements: [Int]) -> [[Int]] {
    guard elements.count > 1 else { return [elements] }
    return elements.flatMap { first in permutations(of: elements.filter { $0 != first }).map { [first] + $0 } }
  }

  @Test func partsOfDifferentDivisionsAreNotCombined() async throws {
    let attempt = DispatchID.random()
    try await store.write([
      .send(Samples.send(id)), .status(Samples.status(id, part: 0, of: 2, attempt: attempt)),
      .status(Samples.status(id, part: 1, of: 3, attempt: attempt)), .status(Samples.status(id, part: 1, of: 2)),
    ])
    #expect(try await store.totals(hub: .default).settled == 0)
    try await store.write([.status(Samples.status(id, part: 1, of: 2, attempt: attempt))])
    let totals = try await store.totals(hub: .default)
    #expect((totals.settled, totals.duplicates) == (1, 2))
  }

  @Test func textWithSpecialCharactersIsStored() async throws {
    let send = SendRequest(
      id: id, sender: "a\0b\u{FFFF}", acceptedAt: .start, audience: .tag("x"),
      content: Content(message: Message(body: "x")))
    try await store.write([.send(send)])
    #expect(try await store.totals(hub: .default).accepted == 1)
  }

  @Test func positionsAreStored() async throws {
    #expect(try await store.positions().isEmpty)
    try await store.write([.send(Samples.send(id)), .send(Samples.send(.random())), .status(Samples.status(id))])
    let topics = Samples.topics
    #expect(
      try await store.positions()
        == [.init(topic: topics.sends, partition: 0): 2, .init(topic: topics.status, partition: 0): 3])
    try await store.write([.send(Samples.send(id))])
    #expect(try await store.positions()[.init(topic: topics.sends, partition: 0)] == 1, "the topic was created again")
  }
}
