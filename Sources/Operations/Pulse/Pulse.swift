package import FanfareCore
import FoundationEssentials

/// What a process reports about itself once a second: the record of the pulse topic.
package struct Pulse: Hashable, Sendable {
  /// Who the process is. Constant while it runs.
  package struct Process: Hashable, Sendable, Codable {
    /// Unique for each start of a process: the key of its records.
    package let id: String
    /// `api`, `worker`, `ledger`, `hooks`, or `demo` for all of them in one process.
    package let role: String
    package let version: String
    package let host: String
    package let pid: Int32
    /// Milliseconds since 1970.
    package let startedAt: Int64

    package init(id: String, role: String, version: String, host: String, pid: Int32, startedAt: Int64) {
      (self.id, self.role, self.version) = (id, role, version)
      (self.host, self.pid, self.startedAt) = (host, pid, startedAt)
    }
  }

  /// Why a process cannot do its job.
  package struct Problem: Hashable, Sendable, Codable {
    /// The name of the readiness check.
    package let check: String
    /// In words, without secrets.
    package let problem: String

    package init(check: String, problem: String) { (self.check, self.problem) = (check, problem) }
  }

  /// A worker's share of a broadcast.
  package struct Segments: Hashable, Sendable, Codable {
    package let hub: String
    package let send: String
    package let segments: Int
    /// Pages that are not begun.
    package let pagesAhead: Int

    package init(hub: String, send: String, segments: Int, pagesAhead: Int) {
      (self.hub, self.send, self.segments, self.pagesAhead) = (hub, send, segments, pagesAhead)
    }
  }

  package var process: Process
  package var time: UnixTime
  /// Whether this is the last record of a process that stops.
  package var isLast = false
  package var problems: [Problem] = []
  package internal(set) var samples: [MetricSample] = []
  /// The hubs whose series the record has, if it could not take those of all.
  package internal(set) var hubs: [String]?
  /// What a worker holds of broadcasts.
  package var segments: [Segments] = []

  package init(process: Process, time: UnixTime) { (self.process, self.time) = (process, time) }
}

extension Pulse {
  /// The most bytes of a record that is read.
  package static let maximumRecordSize = 1_000_000
  private static let type = "fanfare.pulse.v1"

  /// A CloudEvent like all records. Unknown members are ignored.
  private struct Record: Codable {
    struct Content: Codable {
      let process: Process
      let last: Bool?
      let problems: [Problem]
      let samples: [MetricSample]
      let hubs: [String]?
      let segments: [Segments]?
    }

    let specversion: String
    let id: String
    let type: String
    let source: String
    let time: String
    let data: Content
  }

  /// The record's value.
  package func record() throws -> [UInt8] {
    let content = Record.Content(
      process: process, last: isLast ? true : nil, problems: problems, samples: samples,
      hubs: hubs, segments: segments.isEmpty ? nil : segments)
    let record = Record(
      specversion: "1.0", id: "\(process.id)/\(time.milliseconds)", type: Self.type, source: "/fanfare/\(process.role)",
      time: time.description, data: content)
    return Array(try JSONEncoder().encode(record))
  }

  /// Reads a record; nil if it is of another type or malformed.
  package init?(record: some Collection<UInt8>) {
    guard record.count <= Self.maximumRecordSize,
      // A record that cannot be read is skipped: the process sends another one within a second.
      let read = try? JSONDecoder().decode(Record.self, from: Data(record)), read.type == Self.type,
      let time = UnixTime(read.time)
    else { return nil }
    self.init(process: read.data.process, time: time)
    isLast = read.data.last ?? false
    problems = read.data.problems
    // Whoever may write to the topic must not be able to end its readers: larger ones are not exact integers.
    samples = read.data.samples.filter { $0.value.magnitude <= 0x1p53 }
    hubs = read.data.hubs
    segments = read.data.segments ?? []
  }
}
