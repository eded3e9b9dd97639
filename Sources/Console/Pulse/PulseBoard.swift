import FanfareCore
import Operations

/// Aggregates the pulses of all processes: who runs, rates, sums, and the history of fifteen minutes.
///
/// A value without I/O and clock. Its memory is bounded: further processes, hubs and series are left out. A process
/// that says its last word is forgotten at once; one that falls silent is listed for a minute.
struct PulseBoard: Sendable {
  static let maximumProcesses = 300
  static let maximumHubs = 200
  /// The most outcomes and reasons that are counted.
  static let maximumTallies = 2000
  /// After this time without a pulse a process counts as silent, and its rates as zero.
  static let patience = Duration.seconds(5)
  /// After this time without a pulse a process is forgotten.
  static let memory = Duration.seconds(60)

  /// A process that reports. Its series have the numbers of the board's table.
  struct Member: Sendable {
    let process: Pulse.Process
    let problems: [Pulse.Problem]
    let segments: [Pulse.Segments]
    /// The hubs whose series it reports; nil for all.
    let hubs: [String]?
    /// By its own clock.
    fileprivate let time: UnixTime
    let seenAt: UnixTime
    fileprivate(set) var values: [Int: Double] = [:]
    /// Growth per second of the counters, from the last two pulses.
    fileprivate(set) var rates: [Int: Double] = [:]

    func isSilent(at now: UnixTime) -> Bool { now - seenAt > PulseBoard.patience }
    /// The problems that operators of the hub may read.
    func problems(in hub: String) -> [Pulse.Problem] { problems.filter { $0.hubs?.contains(hub) ?? true } }
  }

  private(set) var series: SeriesTable
  private(set) var members: [String: Member] = [:]
  /// By hub.
  private(set) var histories: [String: History] = [:]
  /// Outcomes of pushes and dead letters.
  private(set) var tallies: [MetricSample.Series: QuarterHour] = [:]
  /// When the last point was recorded.
  private(set) var tickedAt: UnixTime?

  init(scope: PulseScope = PulseScope()) { series = SeriesTable(scope: scope) }

  /// Takes a pulse in. `now` is the reader's clock: those of the processes may differ.
  mutating func receive(_ pulse: Pulse, at now: UnixTime) {
    let id = pulse.process.id
    guard !pulse.isLast else {
      members[id] = nil
      return
    }
    guard members[id] != nil || members.count < Self.maximumProcesses else { return }
    var member = Member(
      process: pulse.process, problems: pulse.problems, segments: pulse.segments, hubs: pulse.hubs, time: pulse.time,
      seenAt: now)
    member.values.reserveCapacity(pulse.samples.count)
    for sample in pulse.samples {
      if let number = series.number(of: sample.series) { member.values[number] = sample.value }
    }
    if let former = members[id] {
      // By the process's own clock, which measures its own interval best.
      let seconds = (pulse.time - former.time) / .seconds(1)
      guard seconds > 0 else { return }
      for (number, value) in member.values where series.entries[number].series.kind == .counter {
        // A series that the former record has left out may have any past.
        if former.values[number] == nil, former.hubs != nil { continue }
        let before = former.values[number] ?? 0
        // A counter that has fallen began again.
        let growth = value >= before ? value - before : value
        guard growth > 0 else { continue }
        member.rates[number] = growth / seconds
        switch series.entries[number].use {
        case .outcomes, .deadLetters: count(growth, of: series.entries[number].series, at: now)
        default: break
        }
      }
    }
    members[id] = member
  }

  private mutating func count(_ growth: Double, of series: MetricSample.Series, at now: UnixTime) {
    guard tallies[series] != nil || tallies.count < Self.maximumTallies else { return }
    tallies[series, default: QuarterHour()].add(growth, at: now.seconds / 60)
  }

  /// Records the figures of the second that has passed, and forgets processes that are silent for long.
  mutating func tick(at now: UnixTime) {
    tickedAt = now
    members = members.filter { now - $0.value.seenAt <= Self.memory }
    if series.isFull { forgetSeries() }
    let minute = now.seconds / 60
    for series in tallies.keys { tallies[series]?.advance(to: minute) }
    var points: [String: History.Point] = [:]
    for hub in histories.keys { points[hub] = History.Point() }
    var oldest = 0.0
    for member in members.values where !member.isSilent(at: now) {
      for (number, rate) in member.rates {
        let entry = series.entries[number]
        guard let use = entry.use, let hub = entry.series.labels["hub"] else { continue }
        switch use {
        case .accepted: points[hub, default: History.Point()].accepted += rate
        case .dispatched: points[hub, default: History.Point()].dispatched += rate
        case .outcomes:
          if entry.series.labels["outcome"] == "delivered" {
            points[hub, default: History.Point()].delivered += rate
          } else {
            points[hub, default: History.Point()].failed += rate
          }
        default: break
        }
      }
      for (number, value) in member.values {
        let entry = series.entries[number]
        // The history of a hub begins when it is known, not with its first send.
        let hub = entry.series.labels["hub"]
        if let hub, points[hub] == nil { points[hub] = History.Point() }
        switch entry.use {
        case .pushesInFlight: if let hub { points[hub, default: History.Point()].inFlight += value }
        // Segments of a paused or slow broadcast wait on purpose.
        case .lagSeconds where entry.series.labels["topic"]?.hasSuffix(".segments") != true:
          guard let hubs = entry.hubs else {
            oldest = max(oldest, value)
            continue
          }
          for hub in hubs { points[hub]?.oldest.raise(to: value) }
        default: break
        }
      }
    }
    for (hub, point) in points where histories[hub] != nil || histories.count < Self.maximumHubs {
      var point = point
      point.oldest.raise(to: oldest)
      histories[hub, default: History()].append(point)
    }
  }

  /// Makes room in the table: series come and go with processes, hubs and reasons.
  private mutating func forgetSeries() {
    let moved = series.keep(only: Set(members.values.flatMap(\.values.keys)))
    for id in members.keys {
      guard var member = members[id] else { continue }
      member.values = member.values.renumbered(moved)
      member.rates = member.rates.renumbered(moved)
      members[id] = member
    }
  }
}

extension Double {
  fileprivate mutating func raise(to other: Double) { self = max(self, other) }
}

extension [Int: Double] {
  fileprivate func renumbered(_ moved: [Int: Int]) -> Self {
    Dictionary(uniqueKeysWithValues: compactMap { number, value in moved[number].map { ($0, value) } })
  }
}
