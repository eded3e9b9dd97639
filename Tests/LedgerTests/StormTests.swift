import FanfareCore
import RDKafka
import Support
import Testing

@testable import Ledger

/// Compares stores with a simple model, on random histories that are repeated and shuffled.
@Suite(.everyStore, .timeLimit(.minutes(5))) struct StormTests {
  @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6]) func totalsAddUpForRandomHistories(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let history = History(sends: 150, conflicts: true, using: &generator)
    let directory = try TemporaryDirectory()
    let store = try TestStore.make(directory)
    var model = Model()
    for batch in history.storm(using: &generator) {
      try await store.write(batch)
      for sample in batch { model.add(sample) }
      let totals = try await store.totals(hub: .default)
      #expect(totals.accepted == totals.settled + totals.inFlight)
      #expect(totals == model.totals(hub: .default))
      try await expectReports(of: history, in: store, hub: .default, toAddUpTo: totals)
    }
    for hub in [HubName.default, Samples.otherHub] {
      let totals = try await store.totals(hub: hub)
      #expect(totals == model.totals(hub: hub))
      #expect(totals.inFlight == 0)
      #expect(totals.unannounced == 0)
      try await expectReports(of: history, in: store, hub: hub, toAddUpTo: totals)
    }
  }

  @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6]) func memoryLedgerCountsAsTheStoresDo(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var ledger = MemoryLedger(topics: Samples.topics, maximumDevices: 4)
    var model = Model()
    for batch in History(sends: 150, conflicts: true, using: &generator).storm(using: &generator) {
      try ledger.write(
        batch.map {
          ConsumedRecord(
            topic: $0.topic(Samples.topics), partition: 0, offset: 0, timestamp: 0, key: nil, value: $0.value[...])
        })
      for sample in batch { model.add(sample) }
      for hub in [HubName.default, Samples.otherHub] { #expect(ledger.totals(hub: hub) == model.totals(hub: hub)) }
    }
  }

  /// Expects the reports of single sends to add up to the totals.
  private func expectReports(
    of history: History, in store: any LedgerStore, hub: HubName, toAddUpTo totals: LedgerTotals
  ) async throws {
    var (known, states) = (0, [SendReport.State: Int]())
    var devices = OutcomeCounts()
    for send in history.sends where send.hub == hub {
      guard let report = try await store.report(of: send.id, hub: hub) else { continue }
      known += 1
      states[report.state, default: 0] += 1
      for (platform, outcomes) in report.counts where report.state != .accepted {
        for (outcome, count) in outcomes { devices.add(count, to: .init(platform, outcome)) }
      }
    }
    #expect(known == totals.accepted)
    #expect(states[.accepted, default: 0] == totals.inFlight)
    #expect(states[.noTarget, default: 0] == totals.noTarget)
    #expect(states[.expired, default: 0] == totals.expired)
    #expect(states[.deadLettered, default: 0] == totals.deadLettered)
    #expect(devices.byPlatform == totals.devices)
  }

  @Test(arguments: [UInt64(7), 8, 9]) func orderOfRecordsDoesNotChangeTheResult(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let history = History(sends: 80, conflicts: false, using: &generator)
    let directory = try TemporaryDirectory()
    let stores = [try TestStore.make(directory, number: 0), try TestStore.make(directory, number: 1)]
    for store in stores {
      for batch in history.storm(using: &generator) { try await store.write(batch) }
    }
    for hub in [HubName.default, Samples.otherHub] {
      #expect(try await stores[0].totals(hub: hub) == (try await stores[1].totals(hub: hub)))
    }
    for send in history.sends {
      let report = try await stores[0].report(of: send.id, hub: send.hub)
      #expect(report != nil)
      #expect(report == (try await stores[1].report(of: send.id, hub: send.hub)))
    }
  }

  @Test(arguments: [UInt64(10), 11]) func concurrentLedgersShareOneStore(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let history = History(sends: 120, conflicts: false, using: &generator)
    let directory = try TemporaryDirectory()
    let expected = try TestStore.make(directory, number: 1)
    for batch in history.storm(using: &generator) { try await expected.write(batch) }
    try await withThrowingTaskGroup { group in
      for _ in 0..<3 {
        let batches = history.storm(using: &generator)
        group.addTask {
          let ledger = try TestStore.make(directory, number: 0)
          for batch in batches {
            // Retried until it succeeds, as a ledger does.
            while true {
              do { try await ledger.write(batch) } catch let error as LedgerError where error.code == .unavailable {
                continue
              }
              break
            }
          }
        }
      }
      try await group.waitForAll()
    }
    let shared = try TestStore.make(directory, number: 0)
    for hub in [HubName.default, Samples.otherHub] {
      let totals = try await shared.totals(hub: hub)
      #expect(totals == (try await expected.totals(hub: hub)))
      #expect((totals.inFlight, totals.unannounced) == (0, 0))
    }
    for send in history.sends {
      #expect(
        try await shared.report(of: send.id, hub: send.hub) == (try await expected.report(of: send.id, hub: send.hub)))
    }
  }
}

/// Sends of one to four items, with all their records.
private struct History {
  private(set) var sends: [SendRequest] = []
  private var samples: [Sample] = []

  /// With `conflicts`, some sends have several complete attempts, and items with two records.
  init(sends count: Int, conflicts: Bool, using generator: inout SeededGenerator) {
    for number in 0..<count {
      let hub = Bool.random(using: &generator) ? HubName.default : Samples.otherHub
      let send = Samples.send(
        SendID(high: UInt64.random(in: 0...UInt64.max, using: &generator), low: UInt64(number)), hub: hub)
      sends.append(send)
      samples.append(.send(send))
      append(attemptAt: send, parts: number % 4 == 0 ? Int.random(in: 2...4, using: &generator) : 1, using: &generator)
      if number % 3 == 0 {
        append(attemptAt: send, parts: Int.random(in: 2...4, using: &generator), isCutShort: true, using: &generator)
      }
      guard conflicts, number % 5 == 0 else { continue }
      append(attemptAt: send, parts: Int.random(in: 1...3, using: &generator), hasConflicts: true, using: &generator)
    }
  }

  private mutating func append(
    attemptAt send: SendRequest, parts: Int, isCutShort: Bool = false, hasConflicts: Bool = false,
    using generator: inout SeededGenerator
  ) {
    let attempt = parts > 1 ? DispatchID.random(using: &generator) : nil
    for part in 0..<parts - (isCutShort ? 1 : 0) {
      for _ in 0...(hasConflicts ? 1 : 0) {
        samples.append(.status(Self.status(of: send, part: part, of: parts, attempt: attempt, using: &generator)))
      }
    }
  }

  /// Every record at least once and many repeatedly, in random order, in batches of random size.
  func storm(using generator: inout SeededGenerator) -> [[Sample]] {
    var storm = samples
    for sample in samples where Bool.random(using: &generator) { storm.append(sample) }
    storm.shuffle(using: &generator)
    var batches: [[Sample]] = []
    while !storm.isEmpty {
      let size = min(storm.count, Int.random(in: 1...60, using: &generator))
      batches.append(Array(storm.suffix(size)))
      storm.removeLast(size)
    }
    return batches
  }

  private static func status(
    of send: SendRequest, part: Int, of parts: Int, attempt: DispatchID?, using generator: inout SeededGenerator
  ) -> StatusRecord {
    let state = StatusRecord.State.allCases.randomElement(using: &generator) ?? .settled
    let count = state == .settled ? Int.random(in: 0...6, using: &generator) : 0
    let devices = (0..<count).map { index in
      Samples.device(
        Platform.allCases.randomElement(using: &generator) ?? .apns,
        DeviceResult.Outcome.allCases.randomElement(using: &generator) ?? .failed, number: UInt64(part * 100 + index))
    }
    return Samples.status(
      send.id, hub: send.hub, part: part, of: parts, attempt: attempt, state: state,
      settledAfter: .milliseconds(Int64.random(in: 1...100_000, using: &generator)), devices: devices)
  }
}

/// The expected content of a ledger: for each send its first complete attempt (after a dead letter, the first complete
/// one that follows it), for each item its first record, and the number of other records.
private struct Model {
  private struct Key: Hashable {
    let hub: HubName
    let send: SendID
  }

  private struct Send {
    var isAnnounced = false
    var records: Set<StatusRecord> = []
    /// The first record of each item, by attempt.
    var open: [DispatchID?: [StatusRecord]] = [:]
    var counted: [StatusRecord]?

    /// If so, a later complete attempt replaces the dead letter.
    var wasDeadLettered: Bool { counted?.count == 1 && counted?[0].parts == 1 && counted?[0].state == .deadLettered }
  }

  private var sends: [Key: Send] = [:]

  mutating func add(_ sample: Sample) {
    switch sample {
    case .send(let send): sends[Key(hub: send.hub, send: send.id), default: Send()].isAnnounced = true
    case .status(let status):
      var send = sends[Key(hub: status.hub, send: status.send), default: Send()]
      let isOpen = send.counted == nil || (send.wasDeadLettered && status.state != .deadLettered)
      if send.records.insert(status).inserted, isOpen,
        send.open[status.attempt]?.contains(where: { $0.part == status.part }) != true
      {
        send.open[status.attempt, default: []].append(status)
        if send.open[status.attempt]?.count == status.parts {
          send.counted = send.open.removeValue(forKey: status.attempt)
          // Items of a dead-lettered send count once their attempt is complete.
          if !send.wasDeadLettered { send.open = [:] }
        }
      }
      sends[Key(hub: status.hub, send: status.send)] = send
    }
  }

  func totals(hub: HubName) -> LedgerTotals {
    var totals = LedgerTotals()
    for (key, send) in sends where key.hub == hub {
      totals.accepted += 1
      if !send.isAnnounced { totals.unannounced += 1 }
      totals.duplicates += send.records.count - (send.counted?.count ?? send.open.values.reduce(0) { $0 + $1.count })
      guard let records = send.counted else { continue }
      totals.settled += 1
      let states = Set(records.map(\.state))
      if states == [.noTarget] { totals.noTarget += 1 }
      if states == [.expired] { totals.expired += 1 }
      if states == [.deadLettered] { totals.deadLettered += 1 }
      if states.contains(.cancelled) { totals.cancelled += 1 }
      for device in records.flatMap(\.devices) {
        totals.devices[device.platform, default: [:]][device.outcome, default: 0] += 1
      }
    }
    return totals
  }
}
