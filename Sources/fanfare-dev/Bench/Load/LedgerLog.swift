import FanfareCore
import Foundation
import RDKafka
import Synchronization

/// The records of sends that have been settled, for ledgers to read: in files, because in memory they would count as
/// the ledgers'.
final class LedgerLog: Sendable {
  /// How many sends are under way when an end is read.
  private static let underWay = 10_000

  /// The topics that the records are of.
  let topics = Topics()
  private let readers: Mutex<[Reader]>

  private struct Reader {
    let file: FileHandle
    /// Of each record: whether it is a send's end, and how many bytes it has.
    var records: [(isEnd: Bool, size: Int)] = []
    var next = 0
    /// What is not in the file yet.
    private var pending: [UInt8] = []

    init() throws {
      let path = NSTemporaryDirectory() + "fanfare-log-\(UUID().uuidString)"
      guard FileManager.default.createFile(atPath: path, contents: nil), let file = FileHandle(forUpdatingAtPath: path)
      else {
        throw BenchError("cannot make a file in \(NSTemporaryDirectory())")
      }
      // It goes with its last user.
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

  /// Writes the records of so many sends, for each reader its own. Of a send's two records each goes to any reader.
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

  /// The reader's next records, at most so many; nil when there are no more.
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
