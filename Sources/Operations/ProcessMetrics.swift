import FoundationEssentials
import Glibc

/// The versions of a running program and of its libraries, exported as `fanfare_build_info`.
package struct BuildInformation: Hashable, Sendable {
  /// The program's own version.
  package let version: String
  /// The version of the Swift compiler.
  package let swift: String
  /// The version of librdkafka at run time.
  package let librdkafka: String

  package init(version: String, swift: String, librdkafka: String) {
    self.version = version
    self.swift = swift
    self.librdkafka = librdkafka
  }

  /// A constant 1 whose labels are the versions, so that Prometheus can join them to other metrics.
  var snapshot: MetricSnapshot {
    MetricSnapshot(
      "fanfare_build_info", kind: .gauge,
      samples: [
        MetricSnapshot.Sample(
          labels: MetricLabels([("version", version), ("swift", swift), ("librdkafka", librdkafka)]), value: 1)
      ])
  }
}

/// The `process_…` metrics that every Prometheus client exports.
/// They are read from Linux's `/proc` for each exposition.
///
/// Metrics whose file cannot be read are left out.
struct ProcessStatistics: Sendable {
  private let ticksPerSecond = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
  private let pageSize = Double(max(1, sysconf(Int32(_SC_PAGESIZE))))

  /// Reads the metrics. It takes microseconds: the kernel produces the files in memory.
  func snapshots() -> [MetricSnapshot] {
    var values: [(name: String, kind: MetricKind, value: Double)] = []
    if let fields = statFields(), fields.count > 21 {
      // proc_pid_stat(5) counts fields from 1. The first two are cut off: field N is at index N - 3.
      if let user = Double(fields[11]), let system = Double(fields[12]) {
        values.append(("process_cpu_seconds_total", .counter, (user + system) / ticksPerSecond))
      }
      if let start = Double(fields[19]), let boot = bootTime() {
        values.append(("process_start_time_seconds", .gauge, boot + start / ticksPerSecond))
      }
      if let size = Double(fields[20]) { values.append(("process_virtual_memory_bytes", .gauge, size)) }
      if let pages = Double(fields[21]) { values.append(("process_resident_memory_bytes", .gauge, pages * pageSize)) }
    }
    // If the directory cannot be listed, the metric is left out. Listing it holds one descriptor open.
    if let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
      values.append(("process_open_fds", .gauge, Double(descriptors.count - 1)))
    }
    if let limit = descriptorLimit() { values.append(("process_max_fds", .gauge, limit)) }
    return values.map { name, kind, value in
      MetricSnapshot(name, kind: kind, samples: [MetricSnapshot.Sample(labels: "", value: value)])
    }
  }

  /// The fields of `/proc/self/stat` behind the command's name, which may contain spaces and brackets.
  private func statFields() -> [Substring]? {
    guard let text = contents(of: "/proc/self/stat"), let end = text.lastIndex(of: ")") else { return nil }
    return text[text.index(after: end)...].split(separator: " ")
  }

  private func bootTime() -> Double? {
    let line = contents(of: "/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }
    return line?.split(separator: " ").last.flatMap { Double($0) }
  }

  private func descriptorLimit() -> Double? {
    let line = contents(of: "/proc/self/limits")?.split(separator: "\n").first { $0.hasPrefix("Max open files") }
    return line?.split(separator: " ").dropFirst(3).first.flatMap { Double($0) }
  }

  private func contents(of path: String) -> String? {
    // An unreadable file only leaves its metrics out.
    guard let data = try? Data(contentsOf: URL(filePath: path)) else { return nil }
    return String(decoding: data, as: UTF8.self)
  }
}
