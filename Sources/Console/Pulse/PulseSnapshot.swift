import FanfareCore
import FoundationEssentials
import Operations

/// The state of the deployment as callers of one hub see it. Times are milliseconds since 1970.
///
/// Series, problems and ingress topics of other hubs are left out; processes and other topics belong to all. Each list
/// is bounded, because anyone who may write to the pulse topic determines its length.
struct PulseSnapshot: Encodable, Sendable {
  /// Why a process cannot do its job.
  struct Problem: Encodable, Sendable {
    let check, problem: String
  }

  struct Process: Encodable, Sendable {
    let id, role, version, host: String
    let pid: Int32
    let startedAt, seenAt: Int64
    let isSilent: Bool
    let problems: [Problem]
    /// Of a core.
    let cpu: Double
    let memory: Double
    /// Consumed partitions by topic.
    let partitions: [String: Int]
    /// The segments of the hub's broadcasts that a worker holds.
    let segments: [Pulse.Segments]
  }

  /// Per second, and pushes in flight.
  struct Figures: Encodable, Sendable {
    let accepted, dispatched, delivered, failed, inFlight, oldest: Double
  }

  /// The records of a topic that wait for a role.
  struct Waiting: Encodable, Sendable {
    let topic, role: String
    var records, oldestSeconds: Double
  }

  struct Outcome: Encodable, Sendable {
    let platform, outcome, reason: String
    var perSecond: Double
    let quarterHour: Double
  }

  struct DeadLetters: Encodable, Sendable {
    let reason: String
    let quarterHour: Double
  }

  struct Circuit: Encodable, Sendable {
    let platform: String
    /// The highest state of all workers: 0 closed, 1 half-open, 2 open.
    let state: Int
    /// All workers, and those at which it is not closed.
    let workers, openAt: Int
  }

  struct Expiry: Encodable, Sendable {
    /// `certificate` for the listener's certificate, else the platform of a credential.
    let subject: String
    let expiresAt: Int64
  }

  /// The sum of a series over all processes.
  struct Metric: Encodable, Sendable {
    let name: String
    let kind: MetricSample.Kind
    let labels: [String: String]
    var value: Double
    var perSecond: Double
  }

  /// One array per figure; the last element is of the second `until`.
  struct Past: Encodable, Sendable {
    let until: Int64
    let accepted, dispatched, delivered, failed, inFlight, oldest: [Double]
  }

  /// The most rows of a list, of a process's list, and of `metrics`.
  static let maximumRows = 200
  static let maximumOfProcess = 30
  static let maximumMetrics = 2000

  let at: Int64
  let hub: String
  let figures: Figures
  let findings: [Finding]
  let processes: [Process]
  let waiting: [Waiting]
  let outcomes: [Outcome]
  let deadLetters: [DeadLetters]
  let circuits: [Circuit]
  let expiries: [Expiry]
  /// Only in whole snapshots.
  var metrics: [Metric]?
  var history: Past?

  /// The JSON document. Keys are sorted, so that equal states have equal documents.
  var json: [UInt8] {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return Array(try encoder.encode(self))
    }
  }
}

extension PulseSnapshot {
  /// `isWhole`: with the history and all metrics.
  init(of board: PulseBoard, hub: String, isWhole: Bool, at now: UnixTime) {
    let members = board.members.values.sorted {
      let (left, right) = ($0.process, $1.process)
      return (left.role, left.host, left.startedAt, left.id) < (right.role, right.host, right.startedAt, right.id)
    }
    let entries = board.series.entries
    let isVisible = entries.map { $0.isVisible(in: hub) }

    self.hub = hub
    at = now.milliseconds
    let point = board.histories[hub]?.last ?? History.Point()
    figures = Figures(
      accepted: point.accepted, dispatched: point.dispatched, delivered: point.delivered, failed: point.failed,
      inFlight: point.inFlight, oldest: point.oldest)
    processes = members.map { Process($0, entries, isVisible, of: hub, at: now) }

    var sums = [Double?](repeating: nil, count: entries.count)
    var rates = [Double](repeating: 0, count: entries.count)
    var waiting: [String: Waiting] = [:]
    var circuits: [String: [Double]] = [:]
    var expiries: [String: Double] = [:]
    for member in members where !member.isSilent(at: now) {
      for (number, rate) in member.rates { rates[number] += rate }
      for (number, value) in member.values where isVisible[number] {
        sums[number] = (sums[number] ?? 0) + value
        guard let use = entries[number].use else { continue }
        let labels = entries[number].series.labels
        switch use {
        case .lagRecords, .lagSeconds:
          guard let topic = labels["topic"] else { continue }
          let role = member.process.role
          let key = "\(topic) \(role)"
          var entry = waiting[key] ?? Waiting(topic: topic, role: role, records: 0, oldestSeconds: 0)
          if use == .lagRecords {
            entry.records += value
          } else {
            entry.oldestSeconds = max(entry.oldestSeconds, value)
          }
          waiting[key] = entry
        case .circuit:
          if let platform = labels["platform"] { circuits[platform, default: []].append(value) }
        case .credential where value > 0:
          if let platform = labels["platform"] { expiries[platform] = min(expiries[platform] ?? value, value) }
        case .certificate where value > 0:
          expiries["certificate"] = min(expiries["certificate"] ?? value, value)
        default: break
        }
      }
    }
    self.waiting = waiting.values.sorted { ($0.topic, $0.role) < ($1.topic, $1.role) }.bounded
    self.circuits =
      circuits.map { platform, states in
        Circuit(
          platform: platform, state: Int(clamping: states.max() ?? 0), workers: states.count,
          openAt: states.count { $0 > 0 })
      }.sorted { $0.platform < $1.platform }.bounded
    self.expiries =
      expiries.map { Expiry(subject: $0.key, expiresAt: Int64(clamping: $0.value * 1000)) }
      .sorted { $0.subject < $1.subject }.bounded
    var perSecond: [MetricSample.Series: Double] = [:]
    for (number, entry) in entries.enumerated() where entry.use == .outcomes { perSecond[entry.series] = rates[number] }
    let tallies = board.tallies.filter { ($0.key.labels["hub"] ?? hub) == hub && $0.value.total > 0 }
    outcomes = tallies.filter { $0.key.name == SeriesTable.Use.outcomes.rawValue }.map { series, tally in
      Outcome(
        platform: series.labels["platform"] ?? "", outcome: series.labels["outcome"] ?? "",
        reason: series.labels["reason"] ?? "", perSecond: perSecond[series] ?? 0, quarterHour: tally.total)
    }.sorted { ($0.platform, $1.quarterHour, $0.reason) < ($1.platform, $0.quarterHour, $1.reason) }
    deadLetters = tallies.filter { $0.key.name == SeriesTable.Use.deadLetters.rawValue }.map { series, tally in
      DeadLetters(reason: series.labels["reason"] ?? "", quarterHour: tally.total)
    }.sorted { $0.reason < $1.reason }
    let metrics = zip(entries, zip(sums, rates)).compactMap { entry, value in
      value.0.map { sum in
        Metric(
          name: entry.series.name, kind: entry.series.kind, labels: entry.series.labels, value: sum,
          perSecond: value.1)
      }
    }
    findings =
      Finding.all(
        hub: hub, members: members, waiting: self.waiting, outcomes: outcomes, deadLetters: deadLetters,
        circuits: self.circuits, expiries: self.expiries, metrics: metrics, at: now
      ).bounded
    guard isWhole else { return }
    self.metrics = Array(metrics.sorted { $0.name < $1.name }.prefix(Self.maximumMetrics))
    let points = board.histories[hub]?.points ?? []
    history = Past(
      until: (board.tickedAt ?? now).milliseconds, accepted: points.map(\.accepted),
      dispatched: points.map(\.dispatched), delivered: points.map(\.delivered), failed: points.map(\.failed),
      inFlight: points.map(\.inFlight), oldest: points.map(\.oldest))
  }
}

extension PulseSnapshot.Process {
  fileprivate init(
    _ member: PulseBoard.Member, _ entries: [SeriesTable.Entry], _ isVisible: [Bool], of hub: String, at now: UnixTime
  ) {
    let process = member.process
    (id, role, version, host, pid) = (process.id, process.role, process.version, process.host, process.pid)
    (startedAt, seenAt) = (process.startedAt, member.seenAt.milliseconds)
    isSilent = member.isSilent(at: now)
    problems = member.problems(in: hub).prefix(PulseSnapshot.maximumOfProcess).map {
      PulseSnapshot.Problem(check: $0.check, problem: $0.problem)
    }
    segments = Array(member.segments.lazy.filter { $0.hub == hub }.prefix(PulseSnapshot.maximumOfProcess))
    var (cpu, memory, partitions) = (0.0, 0.0, [String: Int]())
    for (number, value) in member.values where isVisible[number] {
      switch entries[number].use {
      case .cpu: cpu = member.rates[number] ?? 0
      case .memory: memory = value
      case .partitions:
        guard let topic = entries[number].series.labels["topic"],
          partitions[topic] != nil || partitions.count < PulseSnapshot.maximumOfProcess
        else { continue }
        partitions[topic, default: 0].addClamped(Int(clamping: value))
      default: break
      }
    }
    (self.cpu, self.memory, self.partitions) = (cpu, memory, partitions)
  }
}

extension Array {
  fileprivate var bounded: Self { Array(prefix(PulseSnapshot.maximumRows)) }
}
