package import FanfareCore
import FoundationEssentials

/// The report of a process about itself, once a second: the record of the pulse topic.
package struct Pulse: Hashable, Sendable {
  /// The identity of the process. Constant while it runs.
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
    /// The hubs whose operators may read it; nil for those of all.
    package let hubs: [String]?

    package init(check: String, problem: String, hubs: Set<HubName>? = nil) {
      (self.check, self.problem) = (check, problem)
      self.hubs = hubs.map { $0.map(\.rawValue).sorted() }
    }
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
  /// The segments of broadcasts that a worker holds.
  package var segments: [Segments] = []

  package init(process: Process, time: UnixTime) { (self.process, self.time) = (process, time) }
}

extension Pulse {
  /// The most bytes of a record that is read.
  package static let maximumRecordSize = 1_000_000
  /// The most problems of a record: a worker of 200 hubs may have one of each platform.
  package static let maximumProblems = 600
  /// The most broadcasts of a record.
  package static let maximumSegments = 50
  /// The most bytes of a series: its name and its labels.
  package static let maximumSeriesSize = 512
  /// The most bytes of another text: a name, a version, a problem.
  package static let maximumTextSize = 512
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
  ///
  /// Any client with the right to write to the topic can write any record, which must neither fill the memory of its
  /// readers nor end them. So these are left out: samples beyond 2^53, which are no exact integers; series with long
  /// names or labels, repeated ones, and those beyond `maximumSamples`; problems and segments beyond their limits. A
  /// long text is cut. A process with a long name is ignored.
  package init?(record: some Collection<UInt8>) {
    guard record.count <= Self.maximumRecordSize,
      // A record that cannot be read is skipped: the process sends another one within a second.
      let read = try? JSONDecoder().decode(Record.self, from: Data(record)), read.type == Self.type,
      let time = UnixTime(read.time)
    else { return nil }
    let (process, data) = (read.data.process, read.data)
    for text in [process.id, process.role, process.version, process.host]
    where text.utf8.count > Self.maximumTextSize { return nil }
    self.init(process: process, time: time)
    isLast = data.last ?? false
    problems = data.problems.prefix(Self.maximumProblems).map(\.bounded)
    samples = Self.bounded(data.samples)
    hubs = data.hubs.map { $0.filter { HubName($0) != nil }.prefix(Self.maximumSamples) }.map(Array.init)
    segments = (data.segments ?? []).filter(\.isBounded).prefix(Self.maximumSegments).map(\.self)
  }

  private static func bounded(_ all: [MetricSample]) -> [MetricSample] {
    var known: Set<MetricSample.Series> = []
    var bounded: [MetricSample] = []
    for sample in all where bounded.count < maximumSamples {
      guard sample.value.magnitude <= 0x1p53, sample.series.size <= maximumSeriesSize,
        known.insert(sample.series).inserted
      else { continue }
      bounded.append(sample)
    }
    return bounded
  }
}

extension Pulse.Problem {
  private init(check: String, problem: String, hubs: [String]?) {
    (self.check, self.problem, self.hubs) = (check, problem, hubs)
  }

  fileprivate var bounded: Self {
    func bounded(_ text: String) -> String {
      text.utf8.count <= Pulse.maximumTextSize
        ? text : String(decoding: text.utf8.prefix(Pulse.maximumTextSize), as: UTF8.self) + "…"
    }
    return Self(
      check: bounded(check), problem: bounded(problem),
      hubs: hubs.map { $0.filter { HubName($0) != nil }.prefix(Pulse.maximumSamples) }.map(Array.init))
  }
}

extension Pulse.Segments {
  fileprivate var isBounded: Bool { HubName(hub) != nil && SendID(send) != nil }
}
