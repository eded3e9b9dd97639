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

  /// A process that reports.
  struct Member: Sendable {
    fileprivate(set) var pulse: Pulse
    fileprivate(set) var seenAt: UnixTime
    /// Growth per second of the counters, from the last two pulses.
    fileprivate(set) var rates: [MetricSample.Series: Double] = [:]
    fileprivate var counters: [MetricSample.Series: Double] = [:]

    func isSilent(at now: UnixTime) -> Bool { now - seenAt > PulseBoard.patience }
  }

  private(set) var members: [String: Member] = [:]
  /// By hub.
  private(set) var histories: [String: History] = [:]
  /// Outcomes of pushes and dead letters.
  private(set) var tallies: [MetricSample.Series: QuarterHour] = [:]
  /// When the last point was recorded.
  private(set) var tickedAt: UnixTime?

  private static let tallied: Set<String> = ["fanfare_push_outcomes_total", "fanfare_dead_letters_total"]

  /// Takes a pulse in. `now` is the reader's clock: those of the processes may differ.
  mutating func receive(_ pulse: Pulse, at now: UnixTime) {
    let id = pulse.process.id
    guard !pulse.isLast else {
      members[id] = nil
      return
    }
    guard members[id] != nil || members.count < Self.maximumProcesses else { return }
    var member = Member(pulse: pulse, seenAt: now)
    for sample in pulse.samples where sample.kind == .counter { member.counters[sample.series] = sample.value }
    if let former = members[id] {
      // By the process's own clock, which measures its own interval best.
      let seconds = (pulse.time - former.pulse.time) / .seconds(1)
      guard seconds > 0 else { return }
      for (series, value) in member.counters {
        // A series that the former record has left out may have any past.
        if former.counters[series] == nil, former.pulse.hubs != nil { continue }
        let before = former.counters[series] ?? 0
        // A counter that has fallen began again.
        let growth = value >= before ? value - before : value
        guard growth > 0 else { continue }
        member.rates[series] = growth / seconds
        if Self.tallied.contains(series.name) { count(growth, of: series, at: now) }
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
    let minute = now.seconds / 60
    for series in tallies.keys { tallies[series]?.advance(to: minute) }
    var points: [String: History.Point] = [:]
    for hub in histories.keys { points[hub] = History.Point() }
    var oldest = 0.0
    for member in members.values where !member.isSilent(at: now) {
      for (series, rate) in member.rates {
        guard let hub = series.labels["hub"] else { continue }
        switch series.name {
        case "fanfare_sends_accepted_total": points[hub, default: History.Point()].accepted += rate
        case "fanfare_sends_dispatched_total": points[hub, default: History.Point()].dispatched += rate
        case "fanfare_push_outcomes_total":
          if series.labels["outcome"] == "delivered" {
            points[hub, default: History.Point()].delivered += rate
          } else {
            points[hub, default: History.Point()].failed += rate
          }
        default: break
        }
      }
      for sample in member.pulse.samples {
        // The history of a hub begins when it is known, not with its first send.
        if let hub = sample.labels["hub"], points[hub] == nil { points[hub] = History.Point() }
        switch sample.name {
        case "fanfare_pushes_in_flight":
          if let hub = sample.labels["hub"] { points[hub, default: History.Point()].inFlight += sample.value }
        // Segments of a paused or slow broadcast wait on purpose.
        case "fanfare_consumer_lag_seconds" where sample.labels["topic"]?.hasSuffix(".segments") != true:
          oldest = max(oldest, sample.value)
        default: break
        }
      }
    }
    for (hub, point) in points where histories[hub] != nil || histories.count < Self.maximumHubs {
      var point = point
      point.oldest = oldest
      histories[hub, default: History()].append(point)
    }
  }
}
