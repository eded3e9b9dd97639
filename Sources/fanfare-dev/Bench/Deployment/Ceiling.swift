import Foundation

/// h2load, nghttp2's load generator.
///
/// Its rate is the ceiling: the most that the sink accepts from one C program.
struct Ceiling: Sendable {
  let h2load: URL
  let rig: BenchRig

  /// Nil if h2load is not installed.
  init?(_ rig: BenchRig) {
    guard let h2load = ChildProcess.find("h2load") else { return nil }
    self.h2load = h2load
    self.rig = rig
  }

  /// Sends pushes with the product's header fields, over connections with 100 streams each.
  func run(_ sink: Sink, pushes: Int, connections: Int, body: [UInt8]? = nil) async throws -> Measurement {
    let bodyFile = rig.path("h2load-body")
    try Data(body ?? rig.specimen.body).write(to: URL(fileURLWithPath: bodyFile))
    // Many devices, as for the product, so that HPACK cannot compress the paths.
    let addresses = rig.path("h2load-addresses")
    try Data(
      (0..<min(pushes, 1000)).map { "https://\(sink.host):\(sink.port)/3/device/\(Population.handle($0))\n" }.joined()
        .utf8
    ).write(to: URL(fileURLWithPath: addresses))
    var arguments = [
      "--requests=\(pushes)", "--clients=\(connections)", "--max-concurrent-streams=100", "--data=\(bodyFile)",
      "--input-file=\(addresses)",
    ]
    for field in rig.specimen.headers { arguments.append("--header=\(field.name): \(field.value)") }
    // A simulator allows one stream until the first push has succeeded, as APNs does. h2load begins with 100.
    let mayBeRefused = if case .simulator = sink.kind { 100 * connections } else { 0 }
    return try await measure(arguments, requests: pushes, mayBeRefused: mayBeRefused)
  }

  /// Posts to a URL over `connections` connections, with `streams` requests at a time on each: HTTP/1.1 if it is 1,
  /// else HTTP/2 in the clear.
  ///
  /// One process of h2load for each body, at the same time; they share requests and connections equally.
  func post(
    _ url: String, bodies: [[UInt8]], requests: Int, connections: Int, streams: Int = 1, headers: [String]
  ) async throws -> Measurement {
    let (share, clients) = (requests / bodies.count, connections / bodies.count)
    let runs = try await withThrowingTaskGroup(of: Measurement.self) { group in
      for (number, body) in bodies.enumerated() {
        let bodyFile = rig.path("h2load-body-\(number)")
        try Data(body).write(to: URL(fileURLWithPath: bodyFile))
        group.addTask {
          try await measure(
            (streams == 1 ? ["--h1"] : ["--max-concurrent-streams=\(streams)"])
              + ["--requests=\(share)", "--clients=\(clients)", "--data=\(bodyFile)"]
              + headers.map { "--header=\($0)" } + [url], requests: share)
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    // The CPU of h2load is that of all processes that ended, and so of no use here.
    return Measurement(
      count: runs.reduce(0) { $0 + $1.count }, seconds: runs.map(\.seconds).max() ?? 0, cpuSeconds: nil)
  }

  private func measure(_ arguments: [String], requests: Int, mayBeRefused: Int = 0) async throws -> Measurement {
    let before = try ProcessUsage()
    let process = try ChildProcess(
      arguments, name: "h2load", program: h2load, directory: rig.directory, keepsOutput: true)
    defer { process.destroy() }
    let status = try await process.exitStatus(within: .seconds(120))
    let after = try ProcessUsage()
    let lines = try process.output().split(separator: "\n")
    // finished in 1.05s, 190000.00 req/s, 5.00MB/s
    // requests: 200000 total, 200000 started, 200000 done, 200000 succeeded, 0 failed, 0 errored, 0 timeout
    func number(before unit: String, onLineWith beginning: String) -> Double? {
      let line = lines.first { $0.hasPrefix(beginning) }
      let part = line?.split { $0 == "," || $0 == ":" }.first { $0.hasSuffix(unit) }
      return part?.split(separator: " ").first.flatMap { Double($0) }
    }
    guard status == 0, let rate = number(before: "req/s", onLineWith: "finished in"), rate > 0,
      let succeeded = number(before: "succeeded", onLineWith: "requests")
    else {
      throw BenchError(
        "h2load (status \(status)) reported no rate: \(lines.suffix(8).joined(separator: " | "))")
    }
    guard Int(succeeded) >= requests - mayBeRefused else {
      throw BenchError("h2load: \(Int(succeeded)) of \(requests) requests succeeded")
    }
    return Measurement(
      count: requests, seconds: Double(requests) / rate,
      cpuSeconds: after.endedChildrenCPUSeconds - before.endedChildrenCPUSeconds)
  }
}
