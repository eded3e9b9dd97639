import ArgumentParser
import FanfareCore
import Hummingbird
import NIOCore
import Roles

/// The rate of sends that the front end accepts, each acknowledged by Kafka.
///
/// The ceiling is Hummingbird's server with a constant answer.
struct AcceptScenario: BenchScenario {
  let name = "accept"

  private static let headers = [
    "authorization: Basic YmVuY2g6YmVuY2g=", "content-type: application/json;charset=utf-8",
  ]

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    guard let load = bench.ceiling else {
      var report = ScenarioReport(scenario: name, unit: "sends", sink: "–")
      report.notes.append("not measured: h2load is not installed")
      return [report]
    }
    let constant = try ChildProcess(["bench-constant"], name: "constant", directory: rig.directory)
    defer { constant.destroy() }
    let constantBase = "http://\(try await constant.address())"
    let posts = rig.options.scaled(50_000)
    let connections = rig.options.isQuick ? 16 : 256
    @Sendable func post(_ base: String, _ count: Int) async throws -> Measurement {
      // The sends go to many users, because all sends of one user are in one partition.
      let urls = (0..<1000).map { "\(base)/api/notifications?pns=apns&to_tag=\(Population.user($0))" }
      return try await load.post(
        urls, requests: count, connections: connections, headers: Self.headers, body: Array(#""hello""#.utf8))
    }
    _ = try await post(constantBase, posts / 10)
    let singles = try await bench.pairs {
      try await post(constantBase, posts)
    } product: {
      let warmUp = posts / 10
      return try await withFrontEnd(rig, takes: warmUp + posts) { base, api in
        _ = try await post(base, warmUp)
        return try await measure(api) { try await post(base, posts) }
      }
    }
    var single = ScenarioReport(
      scenario: "\(name), one by one", unit: "sends", sink: "Kafka, acks=all", pairs: singles, goals: [.share(0.6)])
    single.notes.append(
      "the ceiling is an unmodified Hummingbird server with a constant answer; \(connections) connections")

    // The posts fit into the embedded cluster; above its capacity the front end answers 503.
    let (lines, batches, warmUp) = (1000, rig.options.scaled(200, floor: 8), rig.options.scaled(20, floor: 8))
    let batch = (0..<lines).map {
      #"{"to":{"user":"user-\#($0)"},"message":{"title":"Number \#($0)","body":"The score is 3 to 1"}}"#
    }
    var runs: [MeasuredPair] = []
    for _ in 0..<rig.options.pairs {
      let measurement = try await withFrontEnd(rig, takes: (warmUp + batches) * lines) { base, api in
        func post(_ count: Int) async throws -> Measurement {
          try await load.post(
            [base + "/api/sends/batch"], requests: count, connections: 4,
            headers: [Self.headers[0], "content-type: application/x-ndjson"],
            body: Array(batch.joined(separator: "\n").utf8))
        }
        _ = try await post(warmUp)
        return try await measure(api) { try await post(batches) }
      }
      runs.append(
        MeasuredPair(
          ceiling: nil,
          product: Measurement(
            count: measurement.count * lines, seconds: measurement.seconds, cpuSeconds: measurement.cpuSeconds,
            peakBytes: measurement.peakBytes)))
    }
    var batched = ScenarioReport(
      scenario: "\(name), NDJSON", unit: "lines", sink: "Kafka, acks=all", pairs: runs, goals: [.rate(150_000)])
    batched.notes.append("\(lines) lines a request, 4 connections")
    return [single, batched]
  }

  /// Runs a front end on a cluster of its own. Throws unless all sends are on the topic at the end.
  ///
  /// The topic is checked because a batch is answered with 200 even if some of its lines were refused.
  private func withFrontEnd(
    _ rig: BenchRig, takes sends: Int, _ body: @escaping @Sendable (String, ChildProcess) async throws -> Measurement
  ) async throws -> Measurement {
    let nowhere = Sink(kind: .external, host: "", port: 0, trustRoots: nil, process: nil)
    return try await BenchPipeline.with(rig, sink: nowhere) { pipeline in
      let measurement = try await pipeline.withFrontEnd(registry: rig.path("accept.sqlite")) { api, port in
        try await body("http://127.0.0.1:\(port)", api)
      }
      let taken = try await pipeline.produced()
      guard taken == sends else { throw BenchError("\(sends) sends were posted, and \(taken) are on the topic") }
      return measurement
    }
  }

  /// The rate of the load with the CPU and memory of the front end.
  private func measure(_ api: ChildProcess, _ load: () async throws -> Measurement) async throws -> Measurement {
    let before = try api.usage()
    var measurement = try await load()
    let after = try api.usage()
    measurement.cpuSeconds = after.cpuSeconds - before.cpuSeconds
    measurement.peakBytes = after.peakBytes
    return measurement
  }
}

/// `fanfare-dev bench-constant`: the front end's HTTP server with a constant answer.
///
/// A ceiling for `fanfare-dev bench`.
struct BenchConstantCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench-constant", abstract: "Part of bench: an HTTP server that answers a constant.",
    shouldDisplay: false)

  func run() async throws {
    let router = Router()
    router.post("/api/notifications") { request, _ in
      _ = try await request.body.collect(upTo: 65_536)
      return Response(
        status: .ok, headers: [.contentType: "application/json"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: #"{"id":"019b0000-0000-7000-8000-000000000000"}"#)))
    }
    let application = Application(
      router: router, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0), backlog: 1024),
      onServerRunning: { channel in Console.print("constant 127.0.0.1:\(channel.localAddress?.port ?? 0)") })
    try await application.runService()
  }
}
