import CoreMetrics
import Synchronization

/// One metric with one set of labels.
/// The handles of swift-metrics write to it from any thread, without a lock.
protocol MetricSeries: AnyObject, Sendable {
  /// Returns the series' lines.
  /// Its cells are read one after another, so that a sum may be one event ahead of its count.
  func samples(labels: MetricLabels) -> [MetricSnapshot.Sample]
}

/// A number that only grows.
final class CounterSeries: MetricSeries, CounterHandler, FloatingPointCounterHandler {
  /// Separate from fractions: adding to an integer is one instruction, adding to a double is a loop.
  private let whole = Atomic<Int64>(0)
  private let fraction = AtomicDouble()

  /// Adds an amount; ignores negative ones.
  func increment(by amount: Int64) {
    guard amount > 0 else { return }
    whole.wrappingAdd(amount, ordering: .relaxed)
  }

  /// Adds an amount; ignores negative and non-finite ones.
  func increment(by amount: Double) {
    guard amount > 0, amount.isFinite else { return }
    fraction.add(amount)
  }

  func reset() {
    whole.store(0, ordering: .relaxed)
    fraction.store(0)
  }

  func samples(labels: MetricLabels) -> [MetricSnapshot.Sample] {
    [MetricSnapshot.Sample(labels: labels, value: Double(whole.load(ordering: .relaxed)) + fraction.load())]
  }
}

/// A number that rises and falls.
final class GaugeSeries: MetricSeries, RecorderHandler, MeterHandler {
  private let value = AtomicDouble()

  func record(_ value: Int64) { self.value.store(Double(value)) }
  func record(_ value: Double) { self.value.store(value) }
  func set(_ value: Int64) { self.value.store(Double(value)) }
  func set(_ value: Double) { self.value.store(value) }
  func increment(by amount: Double) { value.add(amount) }
  func decrement(by amount: Double) { value.add(-amount) }

  func samples(labels: MetricLabels) -> [MetricSnapshot.Sample] {
    [MetricSnapshot.Sample(labels: labels, value: value.load())]
  }
}

/// Counts events by buckets with fixed upper bounds, and sums them up.
final class HistogramSeries: MetricSeries, RecorderHandler, TimerHandler {
  /// The most bounds.
  /// The cells lie in the object itself, so their number is fixed; the last one is for events above all bounds.
  static let maximumBounds = 31

  private let bounds: [Double]
  /// Each event is counted in one cell only; `samples` makes the counts cumulative.
  private let cells: [32 of Atomic<Int64>]
  private let sum = AtomicDouble()

  /// Takes at most `maximumBounds` finite bounds in rising order; see `usableBounds`.
  init(bounds: [Double]) {
    precondition(bounds.count <= Self.maximumBounds, "a histogram with \(bounds.count) bounds")
    self.bounds = bounds
    cells = InlineArray { _ in Atomic(0) }
  }

  /// Returns the finite bounds, sorted, each once, at most `maximumBounds`.
  static func usableBounds(_ bounds: [Double]) -> [Double] {
    Array(Set(bounds.filter(\.isFinite)).sorted().prefix(maximumBounds))
  }

  /// Counts one event. Ignores NaN, which fits no bucket and would spoil the sum.
  func record(_ value: Double) {
    guard !value.isNaN else { return }
    var index = 0
    while index < bounds.count, value > bounds[index] { index += 1 }
    cells[index].wrappingAdd(1, ordering: .relaxed)
    sum.add(value)
  }

  func record(_ value: Int64) { record(Double(value)) }

  func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1_000_000_000) }

  func samples(labels: MetricLabels) -> [MetricSnapshot.Sample] {
    var samples: [MetricSnapshot.Sample] = []
    samples.reserveCapacity(bounds.count + 3)
    var count: Int64 = 0
    for index in 0...bounds.count {
      count += cells[index].load(ordering: .relaxed)
      let bound = index < bounds.count ? MetricSnapshot.number(bounds[index]) : "+Inf"
      samples.append(
        MetricSnapshot.Sample(suffix: "_bucket", labels: labels.appending("le", bound), value: Double(count)))
    }
    samples.append(MetricSnapshot.Sample(suffix: "_sum", labels: labels.text, value: sum.load()))
    samples.append(MetricSnapshot.Sample(suffix: "_count", labels: labels.text, value: Double(count)))
    return samples
  }
}

/// A floating-point number that many threads add to without a lock.
private struct AtomicDouble: ~Copyable, Sendable {
  private let bits = Atomic<UInt64>(0)

  func load() -> Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

  func store(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

  func add(_ amount: Double) {
    var old = bits.load(ordering: .relaxed)
    while true {
      let new = (Double(bitPattern: old) + amount).bitPattern
      let (exchanged, current) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
      if exchanged { return }
      // Another thread was faster.
      old = current
    }
  }
}

/// The values of one metric with all its series at one moment, ready to be written.
struct MetricSnapshot: Sendable {
  /// One line of the exposition.
  struct Sample: Sendable {
    /// The text behind the metric's name: empty, or a histogram's `_bucket`, `_sum` or `_count`.
    let suffix: String
    /// The labels as the exposition writes them, without braces.
    let labels: String
    let value: Double

    init(suffix: String = "", labels: String, value: Double) {
      self.suffix = suffix
      self.labels = labels
      self.value = value
    }

    init(labels: MetricLabels, value: Double) { self.init(labels: labels.text, value: value) }
  }

  let name: String
  let kind: MetricKind
  let help: String
  let samples: [Sample]

  /// Without a help text the catalogue's is taken.
  init(_ name: String, kind: MetricKind, help: String? = nil, samples: [Sample]) {
    self.name = name
    self.kind = kind
    self.help = help ?? MetricCatalogue.help[name] ?? ""
    self.samples = samples
  }

  /// Appends the metric in Prometheus' text format 0.0.4: help, type, and one line per sample.
  func append(to output: inout String) {
    output += "# HELP \(name) \(Self.escaped(help.unicodeScalars))\n# TYPE \(name) \(kind.rawValue)\n"
    for sample in samples {
      output += name
      output += sample.suffix
      if !sample.labels.isEmpty { output += "{\(sample.labels)}" }
      output += " \(Self.number(sample.value))\n"
    }
  }

  /// Returns a number in the syntax of Go's `ParseFloat`, whole numbers without a fraction.
  static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
    if let whole = Int64(exactly: value), abs(whole) < 1 << 53 { return String(whole) }
    return value.description
  }

  /// Escapes backslashes and line feeds; `quotes`: also quotation marks, as label values need it.
  static func escaped(_ scalars: some Sequence<Unicode.Scalar>, quotes: Bool = false) -> String {
    var escaped = ""
    for scalar in scalars {
      switch scalar {
      case "\\": escaped += #"\\"#
      case "\n": escaped += #"\n"#
      case "\"" where quotes: escaped += #"\""#
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
