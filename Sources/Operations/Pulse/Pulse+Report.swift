/// The choice of series for a record, which must stay small with hundreds of hubs.
extension Pulse {
  /// The most series of a record.
  package static let maximumSamples = 2000

  /// The series of a hub that the operations page shows by name.
  private static let shown: Set<String> = [
    "fanfare_sends_accepted_total", "fanfare_sends_dispatched_total", "fanfare_push_outcomes_total",
    "fanfare_dead_letters_total", "fanfare_pushes_in_flight", "fanfare_circuit_state", "fanfare_sender_missing",
    "fanfare_push_credential_expiry_timestamp_seconds",
  ]

  private struct HubSeries {
    var shown: [MetricSample] = []
    var others: [MetricSample] = []
    /// The sum of its counters.
    var activity = 0.0

    mutating func add(_ sample: MetricSample) {
      guard Pulse.shown.contains(sample.name) else { return others.append(sample) }
      shown.append(sample)
      if sample.kind == .counter { activity += sample.value }
    }
  }

  /// Reports a process's series, at most `maximumSamples`.
  ///
  /// If there are more, those without a hub come first, then the series that the page shows, hub by hub with the
  /// busiest first, then the other series of these hubs likewise. `hubs` names the hubs that are reported.
  ///
  /// `fanfare_ready` is left out: its checks name hubs and hooks, and `problems` has their results.
  package mutating func report(_ all: [MetricSample]) {
    let all = all.filter { $0.name != "fanfare_ready" }
    (samples, hubs) = (all, nil)
    guard all.count > Self.maximumSamples else { return }
    var perHub: [String: HubSeries] = [:]
    samples = []
    for sample in all {
      guard let hub = sample.labels["hub"] else {
        samples.append(sample)
        continue
      }
      perHub[hub, default: HubSeries()].add(sample)
    }
    samples = Array(samples.prefix(Self.maximumSamples))
    let order = perHub.sorted { ($1.value.activity, $0.key) < ($0.value.activity, $1.key) }
    let reported = order.prefix { add($0.value.shown) }
    for (_, series) in reported { guard add(series.others) else { break } }
    hubs = reported.map(\.key).sorted()
  }

  /// Adds all of the series, or none if there is no room for all.
  private mutating func add(_ series: [MetricSample]) -> Bool {
    guard samples.count + series.count <= Self.maximumSamples else { return false }
    samples += series
    return true
  }
}
