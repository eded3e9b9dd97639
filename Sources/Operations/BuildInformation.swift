/// What a running program was made of, for `fanfare_build_info`.
package struct BuildInformation: Hashable, Sendable {
  /// The program's own version.
  package let version: String
  /// The version of Swift it was compiled with.
  package let swift: String
  /// The version of librdkafka it runs with.
  package let librdkafka: String

  package init(version: String, swift: String, librdkafka: String) {
    self.version = version
    self.swift = swift
    self.librdkafka = librdkafka
  }

  /// The constant 1 whose labels carry the versions: the way Prometheus joins them to other metrics.
  var snapshot: MetricSnapshot {
    let labels = LabelText([("version", version), ("swift", swift), ("librdkafka", librdkafka)])
    return MetricSnapshot(
      name: "fanfare_build_info", kind: .gauge, help: MetricCatalogue.help["fanfare_build_info"] ?? "",
      samples: [MetricSnapshot.Sample(labels: labels, value: 1)])
  }
}
