import FanfareCore
import Operations
import RDKafka

@testable import Console
@testable import FrontEnd
@testable import Ledger
@testable import Registry

/// Sums of what records and rows say, which anybody may have written: none may end the process.
enum Aggregation {
  /// Numbers and choices, read from the front of an input.
  private struct Input {
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { self.bytes = bytes[...] }

    var isEmpty: Bool { bytes.isEmpty }

    mutating func byte() -> Int { Int(bytes.popFirst() ?? 0) }

    /// Mostly small numbers and the edges of their type.
    mutating func integer() -> Int64 {
      switch byte() % 6 {
      case 0: .max - Int64(byte())
      case 1: .min + Int64(byte())
      case 2: 1 << Int64(byte() % 63)
      case 3: (0..<8).reduce(0) { value, _ in value << 8 | Int64(byte()) }
      default: Int64(byte())
      }
    }

    mutating func double() -> Double {
      switch byte() % 4 {
      case 0: Double(bitPattern: UInt64(bitPattern: integer()))
      case 1: 0x1p53
      default: Double(integer())
      }
    }

    mutating func time() -> UnixTime { UnixTime(milliseconds: integer()) }

    mutating func choice<Value>(_ values: [Value]) -> Value { values[byte() % values.count] }
  }

  // MARK: - The operations page

  /// Some pulses with the series that the page adds up, as they come from the topic; then the documents of two hubs.
  static func showPulses(_ bytes: [UInt8]) {
    // What the topic may hold as it is, too.
    _ = Pulse(record: bytes)
    var input = Input(bytes)
    var board = PulseBoard()
    var now = UnixTime(milliseconds: 1_795_248_000_000)
    let names = [
      "fanfare_sends_accepted_total", "fanfare_push_outcomes_total", "fanfare_dead_letters_total",
      "fanfare_pushes_in_flight", "fanfare_consumer_partitions", "fanfare_consumer_lag_records",
      "fanfare_consumer_lag_seconds", "fanfare_circuit_state", "fanfare_sender_missing",
      "fanfare_push_credential_expiry_timestamp_seconds", "fanfare_tls_certificate_expiry_timestamp_seconds",
      "process_cpu_seconds_total", "process_resident_memory_bytes", "other",
    ]
    // A long input would take longer than the fuzzer waits.
    for _ in 0..<200 where !input.isEmpty {
      let process = Pulse.Process(
        id: "\(input.byte() % 4)", role: input.choice(["worker", "api", "ledger"]), version: "1", host: "h",
        pid: Int32(truncatingIfNeeded: input.integer()), startedAt: input.integer())
      var pulse = Pulse(process: process, time: input.byte() % 8 == 0 ? input.time().writable : now)
      pulse.isLast = input.byte() % 32 == 0
      if input.byte() % 4 == 0 {
        pulse.segments = [
          Pulse.Segments(
            hub: "default", send: "\(SendID(high: 1, low: 2))", segments: Int(input.integer()),
            pagesAhead: Int(input.integer()))
        ]
      }
      let samples = (0..<input.byte() % 16).map { _ in
        MetricSample(
          input.choice(names), input.choice([.counter, .gauge]),
          labels: [
            "hub": input.choice(["default", "other"]), "platform": input.choice(["apns", "fcm"]),
            "topic": input.choice(["a", "b"]), "outcome": input.choice(["delivered", "failed"]), "reason": "r",
          ], value: input.double())
      }
      pulse.report(samples.filter(\.value.isFinite))
      if let record = try? pulse.record(), let read = Pulse(record: record) { board.receive(read, at: now) }
      if input.byte() % 2 == 0 {
        now = now + .milliseconds(input.byte() * 100)
        board.tick(at: now)
      }
    }
    for hub in ["default", "other"] {
      let snapshot = PulseSnapshot(of: board, hub: hub, isWhole: true, at: now)
      guard let json = try? snapshot.json else { preconditionFailure("a state without a document") }
      precondition(json.count < 10_000_000)
    }
  }

  // MARK: - The ledger

  /// Status records, one on each line, twice, and again in reverse: what is known changes nothing.
  static func addStatusRecords(_ bytes: [UInt8]) {
    let topics = Topics()
    let records = bytes.split(separator: UInt8(ascii: "\n")).enumerated().map { number, line in
      ConsumedRecord(
        topic: topics.status, partition: 0, offset: Int64(number), timestamp: 0, key: nil, value: Array(line)[...])
    }
    let entries = LedgerBatch(records, topics: topics, maximumDevices: 4).entries
    precondition(entries.count <= records.count, "a record expands")
    var rows: [SendID: (row: SendRow, items: Items)] = [:]
    var delta = HubDelta()
    for round in [entries, entries, entries.reversed()] {
      for case .settled(let settlement) in round {
        var (row, items) = rows[settlement.send] ?? (SendRow(settlement), Items())
        guard let _ = try? row.add(settlement, items: items, maximumDevices: 4, delta: &delta) else {
          preconditionFailure("a record that cannot be added")
        }
        precondition(row.sum.items <= row.knownParts)
        rows[settlement.send] = (row, items)
      }
    }
    for (row, _) in rows.values {
      let sum = row.sum
      precondition(sum.tally.total >= 0 && OutcomeCounts(stored: sum.tally.storedBytes) == sum.tally)
      _ = (sum.storedFailures, sum.storedTimes, row.report)
    }
  }

  /// The items of one send in memory.
  private final class Items: SendItems {
    private var attempts: [[UInt8]: (ranges: [StoredRange], sum: ItemSum)] = [:]
    private var duplicates: Set<[Int64]> = []

    func stored(_ item: LedgerEntry.Settlement) -> [StoredRange] {
      (attempts[item.attemptKey]?.ranges ?? []).filter { $0.items.overlaps(item.range) }
    }

    func add(_ item: LedgerEntry.Settlement, _ ranges: [Range<Int>], maximumDevices: Int) -> ItemSum {
      var (known, sum) = attempts[item.attemptKey] ?? ([], ItemSum())
      known += ranges.map { StoredRange(items: $0, digest: item.digest) }
      known.sort { $0.items.lowerBound < $1.items.lowerBound }
      for (range, next) in zip(known, known.dropFirst()) {
        precondition(range.items.upperBound <= next.items.lowerBound, "an item counts twice")
      }
      sum.add(item, items: ranges.reduce(0) { $0 + $1.count }, maximumDevices: maximumDevices)
      attempts[item.attemptKey] = (known, sum)
      return sum
    }

    func noteOthers(than item: LedgerEntry.Settlement) -> Int {
      attempts.filter { $0.key != item.attemptKey }.values.flatMap(\.ranges).count {
        duplicates.insert([$0.digest, Int64($0.items.lowerBound)]).inserted
      }
    }

    func close(with item: LedgerEntry.Settlement) {
      attempts = attempts.filter { $0.key == item.attemptKey }.mapValues { ($0.ranges, ItemSum()) }
    }

    func redeem(_ item: LedgerEntry.Settlement) -> Int { 0 }
    func isDuplicate(_ item: LedgerEntry.Settlement) -> Bool { duplicates.contains([item.digest, Int64(item.part)]) }
    func noteDuplicate(_ digest: Int64, part: Int) -> Int { duplicates.insert([digest, Int64(part)]).inserted ? 1 : 0 }
  }

  // MARK: - Quotas

  /// Reservations and sums with numbers as rows and estimates may have them.
  static func useQuotas(_ bytes: [UInt8]) {
    var input = Input(bytes)
    var limits = QuotaLimits()
    for path in QuotaLimits.fields.values.sorted(by: { "\($0)" < "\($1)" }) {
      limits[keyPath: path] = max(0, Int(input.integer()))
    }
    var caller = RateCaller()
    var use = ScheduledUse(sends: Int(input.integer()), bytes: Int(input.integer()), countedAt: input.integer())
    while !input.isEmpty {
      let now = input.time()
      let (count, end) = (Int(input.integer()), input.integer())
      for name in [QuotaName.sends, .devices, .storedBytes] {
        guard let rate = limits.rate(name) else { continue }
        let demand = RateDemand(atLeast: count, atMost: Int(input.integer()))
        let grant = rate.grant(demand, behind: end, at: now)
        precondition(grant.permits >= 0)
        _ = rate.used(until: end, at: now)
        if case .reserve(let demand) = caller.decide(max(1, count), rate, at: now, asWhole: input.byte() % 2 == 0) {
          let row = RateGrant(permits: grant.permits, nextAt: input.time(), reservedUntil: input.integer())
          caller.finish(demand, .success(input.byte() % 2 == 0 ? grant : row), rate, at: now)
        }
        if input.byte() % 4 == 0 { caller.exhaust(rate, at: now) }
      }
      let scheduled = ScheduledSendLimit(sends: limits.scheduledSends, bytes: limits.scheduledBytes)
      _ = use.add(max(0, count), bytes: max(0, Int(input.integer())), within: scheduled, at: now) {
        (Int(input.integer()), Int(input.integer()))
      }
      let start = PushQuota.start(behind: end, at: now)
      _ = PushQuota.end(of: count, from: start, perSecond: Int(input.integer()))
      _ = PushQuota(hub: .default, platform: .fcm, perMinute: count).reservation(of: count, behind: end, at: now)
      _ = BroadcastProgress(
        control: .initial, pages: count, finishedPages: Int(input.integer()), recentPages: Int(input.integer()),
        plannedAt: input.time()
      ).remaining(at: now)
      _ = [Int(input.integer()), count, Int(end)].clampedSum()
    }
  }
}
