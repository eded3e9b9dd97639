/// The value of one series of a metric, as a process publishes it in its pulse.
package struct MetricSample: Hashable, Sendable, Codable {
  package enum Kind: String, Sendable, Codable {
    /// Grows until the process ends.
    case counter
    case gauge
  }

  package let name: String
  package let kind: Kind
  package let labels: [String: String]
  package var value: Double

  package init(_ name: String, _ kind: Kind, labels: [String: String] = [:], value: Double) {
    (self.name, self.kind, self.labels, self.value) = (name, kind, labels, value)
  }

  /// Identifies the series within a process.
  package struct Series: Hashable, Sendable {
    package let name: String
    package let kind: Kind
    package let labels: [String: String]

    /// The bytes of its texts.
    var size: Int { labels.reduce(name.utf8.count) { $0 + $1.key.utf8.count + $1.value.utf8.count } }
  }

  package var series: Series { Series(name: name, kind: kind, labels: labels) }

  /// Parses labels as the exposition writes them: `a="1",b="2"`.
  static func labels(_ text: String) -> [String: String] {
    var labels: [String: String] = [:]
    var rest = text.unicodeScalars[...]
    while let equals = rest.firstIndex(of: "=") {
      let name = String(rest[..<equals])
      rest = rest[equals...].dropFirst(2)
      var value = ""
      scan: while let scalar = rest.popFirst() {
        switch scalar {
        case "\"": break scan
        case "\\":
          let escaped = rest.popFirst()
          value.unicodeScalars.append(escaped == "n" ? "\n" : escaped ?? "\\")
        default: value.unicodeScalars.append(scalar)
        }
      }
      labels[name] = value
      rest = rest.drop { $0 == "," }
    }
    return labels
  }
}

extension PrometheusMetrics {
  /// Returns the counters that are not zero, all gauges, and the sums and counts of histograms.
  ///
  /// The series of a topic's partitions are joined: their records are added, of their ages the highest counts. So a
  /// pulse stays small however many partitions there are.
  package func samples() -> [MetricSample] {
    var samples: [MetricSample] = []
    var joined: [MetricSample.Series: Int] = [:]
    for snapshot in snapshots().sorted(by: { $0.name < $1.name }) {
      for sample in snapshot.samples where sample.suffix != "_bucket" && sample.value.isFinite {
        let kind: MetricSample.Kind = snapshot.kind == .gauge ? .gauge : .counter
        guard kind == .gauge || sample.value != 0 else { continue }
        var labels = MetricSample.labels(sample.labels)
        let isPartition = labels.removeValue(forKey: "partition") != nil
        let read = MetricSample(snapshot.name + sample.suffix, kind, labels: labels, value: sample.value)
        guard isPartition else {
          samples.append(read)
          continue
        }
        if let index = joined[read.series] {
          let former = samples[index].value
          samples[index].value = read.name.hasSuffix("_seconds") ? max(former, read.value) : former + read.value
        } else {
          joined[read.series] = samples.count
          samples.append(read)
        }
      }
    }
    return samples
  }
}
