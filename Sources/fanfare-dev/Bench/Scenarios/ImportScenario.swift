import FanfareCore
import Foundation

/// The rate of `fanfare registrations import` from a file into an empty registry in PostgreSQL.
struct ImportScenario: BenchScenario {
  let name = "import"

  /// The summary that the import prints.
  private struct Summary: Decodable {
    let imported: Int
    let seconds: Double
  }

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    var report = ScenarioReport(
      scenario: name, unit: "registrations", sink: "PostgreSQL", goals: [.rate(50_000), .memory(200)])
    guard let database = try BenchDatabase(rig) else {
      report.notes.append("not measured: PostgreSQL is not installed")
      return [report]
    }
    let devices = rig.options.scaled(1_000_000, floor: 2000)
    let file = rig.path("crowd.ndjson")
    try Self.write(Crowd(devices: devices), to: file)
    // A warm-up, because a fresh server gets memory and log files from the kernel page by page.
    _ = try await take(file, devices, database, rig)
    try await database.settle()
    report.pairs = try await bench.pairs {
      nil
    } product: {
      try await take(file, devices, database, rig)
    }
    return [report]
  }

  private func take(_ file: String, _ devices: Int, _ database: BenchDatabase, _ rig: BenchRig) async throws
    -> Measurement
  {
    try await database.withEmptySchema { connection in
      let process = try ChildProcess(
        ["registrations", "import", "--json", file], name: "import",
        environment: ["FANFARE_REGISTRY_POSTGRES_URL": connection],
        program: ChildProcess.product, directory: rig.directory, keepsOutput: true)
      defer { process.destroy() }
      // The usage of an ended process cannot be read.
      let usage = Task {
        var last: ProcessUsage?
        while !Task.isCancelled, let now = try? process.usage() {  // Nil once it has ended.
          // An exiting process has no memory left.
          if now.peakBytes > 0 { last = now }
          try await Task.sleep(for: .milliseconds(50))
        }
        return last
      }
      let status = try await process.exitStatus(within: .seconds(600))
      guard status == 0 else { throw BenchError("the import ended with status \(status): \(process.lastWords)") }
      let summary = try JSONDecoder().decode(Summary.self, from: Data(try process.output().utf8))
      guard summary.imported == devices else { throw BenchError("\(summary.imported) of \(devices) were imported") }
      let used = try await usage.value
      return Measurement(
        count: devices, seconds: summary.seconds, cpuSeconds: used?.cpuSeconds, instructions: used?.instructions,
        peakBytes: used?.peakBytes)
    }
  }

  /// Writes a crowd like an export, but in the order of device numbers: ids are random.
  private static func write(_ crowd: Crowd, to path: String) throws {
    try Data().write(to: URL(fileURLWithPath: path))
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    var output: [UInt8] = []
    for number in 0..<crowd.devices {
      output.append(contentsOf: crowd.registration(number).json)
      output.append(UInt8(ascii: "\n"))
      guard output.count > 1 << 20 || number == crowd.devices - 1 else { continue }
      try file.write(contentsOf: output)
      output.removeAll(keepingCapacity: true)
    }
    try file.close()
  }
}
