import FanfareCore
import FoundationEssentials
import Operations

/// The state of the deployment as callers of one hub see it. Times are milliseconds since 1970.
///
/// Series of other hubs are left out; processes and topics belong to all.
struct PulseSnapshot: Encodable, Sendable {
  struct Process: Encodable, Sendable {
    let id, role, version, host: String
    let pid: Int32
    let startedAt, seenAt: Int64
    let isSilent: Bool
    let problems: [Pulse.Problem]
    /// Of a core.
    let cpu: Double
    let memory: Double
    /// Consumed partitions by topic.
    let partitions: [String: Int]
    /// What a worker holds of the hub's broadcasts.
    let segments: [Pulse.Segments]
  }

  /// Per second, and pushes in flight.
  struct Figures: Encodable, Sendable {
    let accepted, dispatched, delivered, failed, inFlight, oldest: Double
  }

  /// What waits in a topic to be consumed by a role.
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
      let (left, right) = ($0.pulse.process, $1.pulse.process)
      return (left.role, left.host, left.startedAt, left.id) < (right.role, right.host, right.startedAt, right.id)
    }
    let active = members.filter { !$0.isSilent(at: now) }
    func isVisible(_ labels: [String: String]) -> Bool { labels["hub"].map { $0 == hub } ?? true }

    self.hub = hub
    at = now.milliseconds
    let point = board.histories[hub]?.last ?? History.Point()
    figures = Figures(
      accepted: point.accepted, dispatched: point.dispatched, delivered: point.delivered, failed: point.failed,
      inFlight: point.inFlight, oldest: point.oldest)
    processes = members.map { Process($0, of: hub, at: now) }

    var metrics: [MetricSample.Series: Metric] = [:]
    var waiting: [String: Waiting] = [:]
    var circuits: [String: [Double]] = [:]
    var expiries: [String: Double] = [:]
    for member in active {
      for sample in member.pulse.samples where isVisible(sample.labels) {
        metrics[
          sample.series,
          default: Metric(name: sample.name, kind: sample.kind, labels: sample.labels, value: 0, perSecond: 0)
        ].value += sample.value
        if let rate = member.rates[sample.series] { metrics[sample.series]?.perSecond += rate }
        let role = member.pulse.process.role
        switch sample.name {
        case "fanfare_consumer_lag_records", "fanfare_consumer_lag_seconds":
          guard let topic = sample.labels["topic"] else { continue }
          let key = "\(topic) \(role)"
          var entry = waiting[key] ?? Waiting(topic: topic, role: role, records: 0, oldestSeconds: 0)
          if sample.name.hasSuffix("_records") {
            entry.records += sample.value
          } else {
            entry.oldestSeconds = max(entry.oldestSeconds, sample.value)
          }
          waiting[key] = entry
        case "fanfare_circuit_state":
          if let platform = sample.labels["platform"] { circuits[platform, default: []].append(sample.value) }
        case "fanfare_push_credential_expiry_timestamp_seconds" where sample.value > 0:
          if let platform = sample.labels["platform"] {
            expiries[platform] = min(expiries[platform] ?? sample.value, sample.value)
          }
        case "fanfare_tls_certificate_expiry_timestamp_seconds" where sample.value > 0:
          expiries["certificate"] = min(expiries["certificate"] ?? sample.value, sample.value)
        default: break
        }
      }
    }
    self.waiting = waiting.values.sorted { ($0.topic, $0.role) < ($1.topic, $1.role) }
    self.circuits = circuits.map { platform, states in
      Circuit(
        platform: platform, state: Int(states.max() ?? 0), workers: states.count, openAt: states.count { $0 > 0 })
    }.sorted { $0.platform < $1.platform }
    self.expiries = expiries.map { Expiry(subject: $0.key, expiresAt: Int64($0.value * 1000)) }
      .sorted { $0.subject < $1.subject }
    let tallies = board.tallies.filter { isVisible($0.key.labels) && $0.value.total > 0 }
    outcomes = tallies.filter { $0.key.name == "fanfare_push_outcomes_total" }.map { series, tally in
      Outcome(
        platform: series.labels["platform"] ?? "", outcome: series.labels["outcome"] ?? "",
        reason: series.labels["reason"] ?? "", perSecond: metrics[series]?.perSecond ?? 0, quarterHour: tally.total)
    }.sorted { ($0.platform, $1.quarterHour, $0.reason) < ($1.platform, $0.quarterHour, $1.reason) }
    deadLetters = tallies.filter { $0.key.name == "fanfare_dead_letters_total" }.map { series, tally in
      DeadLetters(reason: series.labels["reason"] ?? "", quarterHour: tally.total)
    }.sorted { $0.reason < $1.reason }
    findings = Finding.all(
      hub: hub, members: members, waiting: self.waiting, outcomes: outcomes, deadLetters: deadLetters,
      circuits: self.circuits, expiries: self.expiries, metrics: metrics, at: now)
    guard isWhole else { return }
    self.metrics = metrics.values.sorted { $0.name < $1.name }
    let points = board.histories[hub]?.points ?? []
    history = Past(
      until: (board.tickedAt ?? now).milliseconds, accepted: points.map(\.accepted),
      dispatched: points.map(\.dispatched), delivered: points.map(\.delivered), failed: points.map(\.failed),
      inFlight: points.map(\.inFlight), oldest: points.map(\.oldest))
  }
}

extension PulseSnapshot.Process {
  fileprivate init(_ member: PulseBoard.Member, of hub: String, at now: UnixTime) {
    let process = member.pulse.process
    (id, role, version, host, pid) = (process.id, process.role, process.version, process.host, process.pid)
    (startedAt, seenAt) = (process.startedAt, member.seenAt.milliseconds)
    isSilent = member.isSilent(at: now)
    problems = member.pulse.problems
    segments = member.pulse.segments.filter { $0.hub == hub }
    var (cpu, memory, partitions) = (0.0, 0.0, [String: Int]())
    for sample in member.pulse.samples {
      switch sample.name {
      case "process_cpu_seconds_total": cpu = member.rates[sample.series] ?? 0
      case "process_resident_memory_bytes": memory = sample.value
      case "fanfare_consumer_partitions":
        if let topic = sample.labels["topic"] { partitions[topic, default: 0] += Int(sample.value) }
      default: break
      }
    }
    (self.cpu, self.memory, self.partitions) = (cpu, memory, partitions)
  }
}
