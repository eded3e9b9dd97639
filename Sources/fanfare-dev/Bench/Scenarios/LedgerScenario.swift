import FanfareCore
import Foundation
import Ledger
import Logging
import RDKafka
import Store
import Synchronization

/// The rate at which ledgers write settled sends to PostgreSQL.
///
/// It counts from record bytes to committed transactions. A send's two records are in partitions of different topics.
/// So they mostly go to different ledgers, and never in one batch.
struct LedgerScenario: BenchScenario {
  let name = "ledger"

  /// The default number of records per batch.
  private static let batch = 5000
  /// The server's settings. Ledgers write all the time, so checkpoints and autovacuum run as by default.
  private static let server = [
    "shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "5min", "autovacuum": "on",
    "wal_level": "replica",
    "wal_init_zero": "on",
  ]

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    guard let database = try BenchDatabase(bench.rig, settings: Self.server) else {
      var report = ScenarioReport(scenario: name, unit: "sends", sink: "–")
      report.notes.append("not measured: PostgreSQL is not installed")
      return [report]
    }
    var reports: [ScenarioReport] = []
    for ledgers in [1, 2] {
      var report = ScenarioReport(
        scenario: "\(name), \(ledgers) sharing the work", unit: "sends", sink: "PostgreSQL", goals: [.rate(40_000)])
      let sends = bench.rig.options.scaled(300_000, floor: 20_000)
      report.pairs = try await bench.pairs(
        ceiling: { nil },
        product: {
          try await database.withEmptySchema { try await measure(ledgers, sends, $0, bench.rig.logger) }
        })
      reports.append(report)
    }
    return reports
  }

  private func measure(_ count: Int, _ sends: Int, _ connection: String, _ logger: Logger) async throws -> Measurement {
    let hub = HubName("bench-\(UInt32.random(in: 0...UInt32.max))") ?? .default
    var database = PostgreSQLConfiguration(connection: connection)
    database.maximumConnections = 4
    let ledgers = try (0..<count).map { _ in
      try PostgreSQLLedger(PostgreSQLLedgerConfiguration(database: database), logger: logger)
    }
    let log = try LedgerLog(sends: sends, hub: hub, readers: count)
    _ = try await ledgers[0].positions()
    let (start, before) = (ContinuousClock.now, try ProcessUsage())
    try await withThrowingTaskGroup { group in
      for (number, ledger) in ledgers.enumerated() {
        for _ in 0..<ledger.writesAtOnce {
          group.addTask {
            while let records = try log.next(Self.batch, of: number) {
              _ = try await ledger.write(await Self.decode(records, topics: log.topics, for: ledger))
            }
          }
        }
      }
      try await group.waitForAll()
    }
    let (end, after) = (ContinuousClock.now, try ProcessUsage())
    let totals = try await ledgers[0].totals(hub: hub)
    guard totals.accepted == sends, totals.settled == sends, totals.unannounced == 0, totals.duplicates == 0 else {
      throw BenchError("of \(sends) sends the ledger has \(totals.accepted), \(totals.settled) of them settled")
    }
    return Measurement(
      count: sends, seconds: (end - start) / .seconds(1), from: before, to: after)
  }

  @concurrent private static func decode(_ records: [ConsumedRecord], topics: Topics, for ledger: PostgreSQLLedger)
    async
    -> LedgerBatch
  {
    LedgerBatch(records, topics: topics, maximumDevices: ledger.maximumDevices)
  }
}

/// Records of settled sends for ledgers to read.
///
/// They are in files: their memory would count as the ledgers'.
final class LedgerLog: Sendable {
  /// The number of sends in flight when a status record is read.
  private static let underWay = 10_000

  let topics = Topics()
  private let readers: Mutex<[Reader]>

  private struct Reader {
    let file: FileHandle
    /// For each record, whether it is a status record, and its size.
    var records: [(isEnd: Bool, size: Int)] = []
    var next = 0
    /// Bytes not written to the file yet.
    private var pending: [UInt8] = []

    init() throws {
      let path = NSTemporaryDirectory() + "fanfare-log-\(UUID().uuidString)"
      guard FileManager.default.createFile(atPath: path, contents: nil), let file = FileHandle(forUpdatingAtPath: path)
      else {
        throw BenchError("cannot make a file in \(NSTemporaryDirectory())")
      }
      // The kernel frees the unlinked file when it is closed.
      try FileManager.default.removeItem(atPath: path)
      self.file = file
    }

    mutating func append(_ value: [UInt8], isEnd: Bool) throws {
      records.append((isEnd, value.count))
      pending += value
      if pending.count > 1 << 20 { try flush() }
    }

    mutating func flush() throws {
      try file.write(contentsOf: pending)
      pending.removeAll(keepingCapacity: true)
    }

    mutating func rewind() throws {
      try flush()
      try file.seek(toOffset: 0)
    }
  }

  /// Writes the records of the sends. A send's two records each go to a random reader.
  init(sends: Int, hub: HubName, readers count: Int) throws {
    var readers = try (0..<count).map { _ in try Reader() }
    var ends: [[UInt8]] = []
    let now = SystemWallClock().now()
    for number in 0..<sends {
      let (send, end) = Self.records(of: number, hub: hub, at: now + .milliseconds(number / 40))
      try readers[.random(in: 0..<count)].append(send, isEnd: false)
      if number < Self.underWay {
        ends.append(end)
      } else {
        try readers[.random(in: 0..<count)].append(ends[number % Self.underWay], isEnd: true)
        ends[number % Self.underWay] = end
      }
    }
    for end in ends { try readers[.random(in: 0..<count)].append(end, isEnd: true) }
    for reader in readers.indices { try readers[reader].rewind() }
    self.readers = Mutex(readers)
  }

  /// The reader's next records, at most `limit`; nil at the end.
  func next(_ limit: Int, of reader: Int) throws -> [ConsumedRecord]? {
    let (bytes, records) = try readers.withLock { readers in
      let records = readers[reader].records[readers[reader].next...].prefix(limit)
      readers[reader].next = records.endIndex
      let size = records.reduce(0) { $0 + $1.size }
      return ([UInt8](try readers[reader].file.read(upToCount: size) ?? Data()), records)
    }
    guard !records.isEmpty else { return nil }
    var start = 0
    return records.map { record in
      defer { start += record.size }
      return ConsumedRecord(
        topic: record.isEnd ? topics.status : topics.sends, partition: Int32(reader), offset: 0, timestamp: 0, key: nil,
        value: bytes[start..<start + record.size])
    }
  }

  private static func records(of number: Int, hub: HubName, at now: UnixTime) -> (send: [UInt8], end: [UInt8]) {
    let send = SendRequest(
      id: .timeOrdered(at: now), hub: hub, sender: "backend", acceptedAt: now,
      audience: .user("user-\(number % 50_000)"),
      content: Content(message: Message(title: "Number \(number)", body: "of many")))
    // 1.6 devices a user.
    let devices = (0..<(number % 5 < 3 ? 2 : 1)).map { _ in
      DeviceResult(registration: .random(), platform: .fcm, outcome: .delivered, reason: "", status: 200, attempts: 1)
    }
    let end = StatusRecord(
      send: send.id, hub: hub, state: .settled, sender: "backend", audience: send.audience, acceptedAt: now,
      settledAt: now + .milliseconds(40), devices: devices)
    return (send.encoded(), end.encoded())
  }
}
