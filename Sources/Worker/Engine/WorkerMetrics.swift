import FanfareCore
import Metrics
import RDKafka

/// The worker's metrics. Handles are made at the first use of a label combination, and kept.
struct WorkerMetrics {
  private struct ResultLabels: Hashable {
    let sender: Int
    let outcome: DeviceResult.Outcome
    let reason: String
  }

  private struct RetryLabels: Hashable {
    let sender: Int
    let reason: String
  }

  private struct Lag {
    let records: Gauge
    let seconds: Gauge
  }

  private var table: SenderTable
  private let group: String
  private var dispatched: [Counter] = []
  private var delivered: [Counter] = []
  private var pages: [Counter] = []
  private var latencies: [Timer] = []
  private var inFlight: [Gauge] = []
  private var circuits: [Gauge] = []
  private var missing: [Gauge] = []
  private var dropped: [Counter] = []
  private var failures: [Counter] = []
  private var guards: [Gauge] = []
  private var pausedBroadcasts: [Counter] = []
  private var deferrals: [Counter] = []
  private let sendsInFlight = Gauge(label: "fanfare_sends_in_flight")
  private let saturation = Gauge(label: "fanfare_worker_saturation")
  private let skipped = Counter(label: "fanfare_sends_resumed_settled_total")
  private let lookUps = Timer(label: "fanfare_registry_lookup_seconds")
  private var results: [ResultLabels: Counter] = [:]
  private var retries: [RetryLabels: Counter] = [:]
  private var settled: [Tallies.Settled: Counter] = [:]
  private var deadLetters: [DeadLetter.Reason: Counter] = [:]
  private var lags: [TopicPartition: Lag] = [:]
  /// The number of consumed partitions, by topic.
  private var partitionCounts: [String: Gauge] = [:]

  /// `group` is the consumer group of the worker.
  init(table: SenderTable, group: String) {
    self.table = table
    self.group = group
    extend(to: table)
    // An increase is seen only in a series that was there before.
    for reason in DeadLetter.Reason.allCases { _ = counter(of: reason) }
  }

  /// Adds the metrics of the hubs that were appended to the table.
  mutating func extend(to table: SenderTable) {
    self.table = table
    for hub in table.hubs[dispatched.count...] {
      let dimensions = [("hub", hub.rawValue)]
      pages.append(Counter(label: "fanfare_broadcast_pages_total", dimensions: dimensions))
      pausedBroadcasts.append(Counter(label: "fanfare_broadcasts_paused_total", dimensions: dimensions))
      dispatched.append(Counter(label: "fanfare_sends_dispatched_total", dimensions: dimensions))
    }
    for number in delivered.count..<table.senders.count {
      let dimensions = Self.dimensions(of: number, in: table)
      delivered.append(
        Counter(
          label: "fanfare_push_outcomes_total",
          dimensions: dimensions + [("outcome", DeviceResult.Outcome.delivered.rawValue), ("reason", "")]))
      latencies.append(Timer(label: "fanfare_accept_to_outcome_seconds", dimensions: dimensions))
      inFlight.append(Gauge(label: "fanfare_pushes_in_flight", dimensions: dimensions))
      circuits.append(Gauge(label: "fanfare_circuit_state", dimensions: dimensions))
      missing.append(Gauge(label: "fanfare_sender_missing", dimensions: dimensions))
      dropped.append(Counter(label: "fanfare_devices_dropped_total", dimensions: dimensions))
      deferrals.append(Counter(label: "fanfare_pushes_deferred_total", dimensions: dimensions))
      failures.append(Counter(label: "fanfare_pushes_failed_total", dimensions: dimensions))
      guards.append(Gauge(label: "fanfare_unregister_guard_tripped", dimensions: dimensions))
    }
  }

  /// Counts what happened in a turn.
  mutating func count(_ tallies: Tallies) {
    // Thousands of sends in a turn nearly always end alike: a counter is looked up, and locked, once per run.
    tallies.dispatched.forEachRun { hub, count in dispatched[hub].increment(by: count) }
    tallies.pages.forEachRun { hub, count in pages[hub].increment(by: count) }
    for result in tallies.results {
      latencies[result.sender].recordMilliseconds(result.latency)
      guard result.outcome != .delivered else { continue }
      counter(of: result).increment()
      // The end of a registration is no failure.
      if result.outcome != .deviceGone { failures[result.sender].increment() }
    }
    tallies.results.lazy.filter { $0.outcome == .delivered }.map(\.sender).forEachRun {
      delivered[$0].increment(by: $1)
    }
    for retry in tallies.retries { counter(of: retry).increment() }
    for sender in tallies.deferrals { deferrals[sender].increment() }
    tallies.settled.forEachRun { end, count in counter(of: end).increment(by: count) }
    if tallies.skipped > 0 { skipped.increment(by: tallies.skipped) }
    for reason in tallies.deadLetters { counter(of: reason).increment() }
  }

  /// Counts a broadcast that was paused because too many of its pushes failed.
  func countPause(ofBroadcastIn hub: HubName) {
    if let number = table.number(of: hub) { pausedBroadcasts[number].increment() }
  }

  /// Counts devices that the registry has unregistered.
  func count(unregistered devices: [RegistrationID], of requested: [Effects.Unregistration]) {
    let gone = Set(devices)
    for request in requested where gone.contains(request.device.registration) { dropped[request.sender].increment() }
  }

  func record(lookUp duration: Duration) {
    let (seconds, attoseconds) = duration.components
    lookUps.recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }

  /// Updates the gauges of pushes in flight, of saturation, of the circuits, of the unregister guards and of missing
  /// senders.
  func show(_ dispatcher: Dispatcher) {
    sendsInFlight.record(dispatcher.items.held.records)
    saturation.record(dispatcher.saturation)
    for number in dispatcher.lanes.indices where table.senders[number] == nil {
      missing[number].record(dispatcher.unserved.contains(number) ? 1 : 0)
    }
    for (number, lane) in dispatcher.lanes.enumerated() where table.senders[number] != nil {
      inFlight[number].record(lane.places.inFlight)
      circuits[number].record(lane.breaker.state.rawValue)
      guards[number].record(lane.unregistering.isSuspended ? 1 : 0)
    }
  }

  /// Updates the lag in records and the age of the oldest unsettled one.
  /// Partitions no longer owned read 0. Tells the tracker which partitions have no lag.
  mutating func show(lag: [TopicPartition: Int64], partitions: inout PartitionTracker, at now: UnixTime) {
    for partition in lags.keys where lag[partition] == nil {
      lags[partition]?.records.record(0)
      lags[partition]?.seconds.record(0)
    }
    for (partition, records) in lag {
      let gauges = gauges(of: partition)
      gauges.records.record(records)
      if records == 0 { partitions.catchUp(partition, at: now.milliseconds) }
      let oldest = partitions.offsets.oldestTimestamp(of: partition)
      let age = oldest.map { Double(max(0, now.milliseconds - $0)) / 1000 } ?? 0
      gauges.seconds.record(records == 0 ? 0 : age)
    }
    var counts = partitionCounts.mapValues { _ in 0 }
    for partition in lag.keys { counts[partition.topic, default: 0] += 1 }
    for (topic, count) in counts {
      let gauge =
        partitionCounts[topic] ?? Gauge(label: "fanfare_consumer_partitions", dimensions: [("topic", topic)])
      partitionCounts[topic] = gauge
      gauge.record(count)
    }
  }

  private static func dimensions(of sender: Int, in table: SenderTable) -> [(String, String)] {
    [("hub", table.hub(ofSender: sender).rawValue), ("platform", table.platform(ofSender: sender).name)]
  }

  private mutating func counter(of result: Tallies.Result) -> Counter {
    // Reasons are a fixed vocabulary. If a service invents many, they must not become as many time series.
    let isNew =
      results.count >= 1000
      && results[ResultLabels(sender: result.sender, outcome: result.outcome, reason: result.reason)] == nil
    let labels = ResultLabels(sender: result.sender, outcome: result.outcome, reason: isNew ? "other" : result.reason)
    if let counter = results[labels] { return counter }
    let counter = Counter(
      label: "fanfare_push_outcomes_total",
      dimensions: Self.dimensions(of: labels.sender, in: table) + [
        ("outcome", labels.outcome.rawValue), ("reason", labels.reason),
      ])
    results[labels] = counter
    return counter
  }

  private mutating func counter(of retry: Tallies.Retry) -> Counter {
    let isNew = retries.count >= 1000 && retries[RetryLabels(sender: retry.sender, reason: retry.reason)] == nil
    let labels = RetryLabels(sender: retry.sender, reason: isNew ? "other" : retry.reason)
    if let counter = retries[labels] { return counter }
    let counter = Counter(
      label: "fanfare_push_retries_total",
      dimensions: Self.dimensions(of: labels.sender, in: table) + [("reason", labels.reason)]
    )
    retries[labels] = counter
    return counter
  }

  private mutating func counter(of end: Tallies.Settled) -> Counter {
    if let counter = settled[end] { return counter }
    let counter = Counter(
      label: "fanfare_sends_settled_total",
      dimensions: [("hub", table.hubs[end.hub].rawValue), ("state", end.state.rawValue)])
    settled[end] = counter
    return counter
  }

  private mutating func counter(of reason: DeadLetter.Reason) -> Counter {
    if let counter = deadLetters[reason] { return counter }
    let counter = Counter(label: "fanfare_dead_letters_total", dimensions: [("reason", reason.rawValue)])
    deadLetters[reason] = counter
    return counter
  }

  private mutating func gauges(of partition: TopicPartition) -> Lag {
    if let lag = lags[partition] { return lag }
    let dimensions = [
      ("consumer_group", group), ("topic", partition.topic), ("partition", "\(partition.partition)"),
    ]
    let lag = Lag(
      records: Gauge(label: "fanfare_consumer_lag_records", dimensions: dimensions),
      seconds: Gauge(label: "fanfare_consumer_lag_seconds", dimensions: dimensions))
    lags[partition] = lag
    return lag
  }
}

extension Sequence where Element: Equatable {
  /// Calls `body` with each run of equal elements and its length.
  func forEachRun(_ body: (Element, Int) -> Void) {
    var run: (element: Element, count: Int)?
    for element in self {
      if let known = run, known.element == element {
        run = (element, known.count + 1)
      } else {
        if let known = run { body(known.element, known.count) }
        run = (element, 1)
      }
    }
    if let run { body(run.element, run.count) }
  }
}
