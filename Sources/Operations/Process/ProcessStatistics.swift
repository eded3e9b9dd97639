import FoundationEssentials
import Glibc

/// What Linux knows about this process, under the names that every Prometheus client uses. Read anew for each
/// exposition; a file that cannot be read leaves its metrics out.
struct ProcessStatistics: Sendable {
  private let ticksPerSecond = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
  private let pageSize = Double(max(1, sysconf(Int32(_SC_PAGESIZE))))

  /// The metrics now. The files are made by the kernel in memory; reading them takes microseconds.
  func snapshots() -> [MetricSnapshot] {
    var values: [(name: String, kind: MetricKind, value: Double)] = []
    if let fields = statFields(), fields.count > 21 {
      // proc_pid_stat(5) counts from 1 and the name in brackets is cut off with the number before it: field N is at N -
      // 3.
      if let user = Double(fields[11]), let system = Double(fields[12]) {
        values.append(("process_cpu_seconds_total", .counter, (user + system) / ticksPerSecond))
      }
      if let start = Double(fields[19]), let boot = bootTime() {
        values.append(("process_start_time_seconds", .gauge, boot + start / ticksPerSecond))
      }
      if let size = Double(fields[20]) { values.append(("process_virtual_memory_bytes", .gauge, size)) }
      if let pages = Double(fields[21]) { values.append(("process_resident_memory_bytes", .gauge, pages * pageSize)) }
    }
    // Where the directory cannot be listed the number is left out. The listing itself holds one descriptor open.
    if let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
      values.append(("process_open_fds", .gauge, Double(descriptors.count - 1)))
    }
    if let limit = descriptorLimit() { values.append(("process_max_fds", .gauge, limit)) }
    return values.map { name, kind, value in
      MetricSnapshot(
        name: name, kind: kind, help: MetricCatalogue.help[name] ?? "",
        samples: [MetricSnapshot.Sample(labels: "", value: value)])
    }
  }

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
    // Without the file its metrics are left out, as on a system that has no such file.
    guard let data = try? Data(contentsOf: URL(filePath: path)) else { return nil }
    return String(decoding: data, as: UTF8.self)
  }
}
