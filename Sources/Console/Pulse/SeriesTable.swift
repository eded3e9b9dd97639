import FanfareCore
import Operations

/// The series that processes report, each once and by number, with its meaning for the page.
///
/// Processes of a role report the same series: a number for each keeps their values small and their sums quick.
struct SeriesTable: Sendable {
  /// Further series are left out until others are forgotten.
  static let maximumSeries = 20_000

  /// The series that the page shows by name.
  enum Use: String, Sendable {
    case accepted = "fanfare_sends_accepted_total"
    case dispatched = "fanfare_sends_dispatched_total"
    case outcomes = "fanfare_push_outcomes_total"
    case deadLetters = "fanfare_dead_letters_total"
    case pushesInFlight = "fanfare_pushes_in_flight"
    case sendsInFlight = "fanfare_sends_in_flight"
    case partitions = "fanfare_consumer_partitions"
    case lagRecords = "fanfare_consumer_lag_records"
    case lagSeconds = "fanfare_consumer_lag_seconds"
    case circuit = "fanfare_circuit_state"
    case senderMissing = "fanfare_sender_missing"
    case credential = "fanfare_push_credential_expiry_timestamp_seconds"
    case certificate = "fanfare_tls_certificate_expiry_timestamp_seconds"
    case cpu = "process_cpu_seconds_total"
    case memory = "process_resident_memory_bytes"
  }

  struct Entry: Sendable {
    let series: MetricSample.Series
    let use: Use?
    /// The hubs whose operators may read it; nil for those of all.
    let hubs: Set<String>?

    func isVisible(in hub: String) -> Bool { hubs?.contains(hub) ?? true }
  }

  private let scope: PulseScope
  private(set) var entries: [Entry] = []
  private var numbers: [MetricSample.Series: Int] = [:]

  init(scope: PulseScope) { self.scope = scope }

  var isFull: Bool { entries.count >= Self.maximumSeries }

  /// The number of a series, which is its place in `entries`; nil if it is unknown and the table is full.
  mutating func number(of series: MetricSample.Series) -> Int? {
    if let number = numbers[series] { return number }
    guard !isFull else { return nil }
    numbers[series] = entries.count
    entries.append(Entry(series: series, use: Use(rawValue: series.name), hubs: scope.hubs(of: series.labels)))
    return entries.count - 1
  }

  /// Forgets all series but those numbers. Returns the new number of each.
  mutating func keep(only used: Set<Int>) -> [Int: Int] {
    var moved: [Int: Int] = [:]
    let kept = used.sorted().map { number in
      moved[number] = moved.count
      return entries[number]
    }
    entries = kept
    numbers = Dictionary(uniqueKeysWithValues: kept.enumerated().map { ($1.series, $0) })
    return moved
  }
}

/// Decides whose operators may read a series.
struct PulseScope: Sendable {
  /// The beginning of the names of ingress topics, which end with their hub.
  private let ingress: String
  /// The hubs of each hook that this front end knows.
  private let hooks: [String: Set<String>]

  init(topics: Topics = Topics(), hooks: [String: Set<HubName>] = [:]) {
    ingress = topics.sends + "."
    self.hooks = hooks.mapValues { Set($0.map(\.rawValue)) }
  }

  /// The hubs of a series with these labels; nil if it belongs to the whole deployment.
  func hubs(of labels: [String: String]) -> Set<String>? {
    if let hub = labels["hub"] { return [hub] }
    if let topic = labels["topic"], topic.hasPrefix(ingress) { return [String(topic.dropFirst(ingress.count))] }
    let client = labels["client"].flatMap { $0.hasPrefix("hook-") ? String($0.dropFirst(5)) : nil }
    return (labels["hook"] ?? client).map { hooks[$0] ?? [] }
  }
}
