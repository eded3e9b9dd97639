import Foundation
import Roles

/// The cost of accepting sends at the front end, each acknowledged by Kafka.
///
/// The ceiling of posts is nginx answering a constant, measured in the same rounds. So is the listener without a front end.
struct AcceptScenario: BenchScenario {
  let name = "accept"

  /// A way of posting one send at a time.
  private struct Posting {
    let name: String
    let connections: Int
    /// Requests at a time on each connection: HTTP/1.1 if it is 1.
    var streams = 1
    let goals: [ScenarioReport.Goal]
  }

  private static let authorization = "authorization: Basic YmVuY2g6YmVuY2g="
  /// `bench:bench`, bcrypt of cost 10.
  private static let htpasswd = "bench:$2b$10$TpHeXcrGu4lRoEGV4D6xt.AQtuhiVcfTEcYfWxGKUIYAPAWkbRGO2\n"

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    guard let load = bench.ceiling else {
      var report = ScenarioReport(scenario: name, unit: "sends", sink: "–")
      report.notes.append("not measured: h2load is not installed")
      return [report]
    }
    return try await posts(bench, load) + [try await batches(bench, load)]
  }

  /// Measures all postings and the constant servers, round by round.
  private func posts(_ bench: BenchRun, _ load: Ceiling) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let nginx = try await ConstantServer.nginx(rig)
    defer { nginx?.process.destroy() }
    let listener = try await ConstantServer.listener(rig)
    defer { listener.process.destroy() }
    let many = rig.options.isQuick ? 16 : 256
    let postings = [
      Posting(name: name, connections: many, goals: [.cpu(28), .multiple(4), .memory(80)]),
      Posting(name: name, connections: many / 4, goals: [.cpu(36)]),
      Posting(name: "\(name), HTTP/2", connections: 4, streams: 100, goals: [.cpu(18)]),
    ]
    let constant = Posting(name: "\(name), the listener's constant", connections: many, goals: [])
    // As many as four partitions of the embedded cluster hold; above that the front end answers 503.
    let (count, warmUp) = (rig.options.scaled(32_000, floor: 800), rig.options.scaled(8000, floor: 80))

    @Sendable func post(_ base: String, _ posting: Posting, _ count: Int) async throws -> Measurement {
      // To several users, because all sends of one user are in one partition.
      let bodies = (0..<4).map {
        Array(#"{"to":{"user":"user-\#($0)"},"message":{"title":"Goal","body":"The score is 3 to 1"}}"#.utf8)
      }
      return try await load.post(
        base + "/api/sends", bodies: bodies, requests: count, connections: posting.connections,
        streams: posting.streams, headers: [Self.authorization, "content-type: application/json"])
    }
    func ofConstant(_ server: ConstantServer, _ posting: Posting) async throws -> Measurement {
      let base = posting.streams == 1 ? server.base : server.http2Base
      _ = try await post(base, posting, warmUp)
      return try await measure(server.process) { try await post(base, posting, count) }
    }

    var pairs = postings.map { _ in [MeasuredPair]() }
    var constants: [MeasuredPair] = []
    for _ in 0..<rig.options.pairs {
      for (index, posting) in postings.enumerated() {
        var ceiling: Measurement?
        if let nginx { ceiling = try await ofConstant(nginx, posting) }
        if index == 0 {
          constants.append(MeasuredPair(ceiling: ceiling, product: try await ofConstant(listener, constant)))
        }
        let product = try await withFrontEnd(rig, takes: warmUp + count) { base, api in
          _ = try await post(base, posting, warmUp)
          return try await measure(api) { try await post(base, posting, count) }
        }
        pairs[index].append(MeasuredPair(ceiling: ceiling, product: product))
      }
    }
    let note = nginx == nil ? "no ceiling: nginx is not installed" : "the ceiling is nginx answering a constant"
    return zip(postings + [constant], pairs + [constants]).map { posting, pairs in
      var report = ScenarioReport(
        scenario: posting.name, unit: "sends", connections: posting.connections,
        sink: posting.name == constant.name ? "none" : "Kafka, acks=all", pairs: pairs, goals: posting.goals)
      report.notes.append(posting.streams == 1 ? note : "\(posting.streams) streams each; \(note)")
      return report
    }
  }

  private func batches(_ bench: BenchRun, _ load: Ceiling) async throws -> ScenarioReport {
    let rig = bench.rig
    let (lines, batches, warmUp) = (1000, rig.options.scaled(200, floor: 8), rig.options.scaled(20, floor: 8))
    let batch = (0..<lines).map {
      #"{"to":{"user":"user-\#($0)"},"message":{"title":"Number \#($0)","body":"The score is 3 to 1"}}"#
    }
    var runs: [MeasuredPair] = []
    for _ in 0..<rig.options.pairs {
      var measurement = try await withFrontEnd(rig, takes: (warmUp + batches) * lines) { base, api in
        func post(_ count: Int) async throws -> Measurement {
          try await load.post(
            base + "/api/sends/batch", bodies: [Array(batch.joined(separator: "\n").utf8)], requests: count,
            connections: 4, headers: [Self.authorization, "content-type: application/x-ndjson"])
        }
        _ = try await post(warmUp)
        return try await measure(api) { try await post(batches) }
      }
      measurement.count *= lines
      runs.append(MeasuredPair(ceiling: nil, product: measurement))
    }
    var batched = ScenarioReport(
      scenario: "\(name), NDJSON", unit: "lines", sink: "Kafka, acks=all", pairs: runs, goals: [.rate(150_000)])
    batched.notes.append("\(lines) lines a request, 4 connections")
    return batched
  }

  /// Runs a front end on a cluster of its own. Throws unless all sends are on the topic at the end.
  ///
  /// The topic is checked because a batch is answered with 200 even if some of its lines were refused.
  private func withFrontEnd(
    _ rig: BenchRig, takes sends: Int, _ body: @escaping @Sendable (String, ChildProcess) async throws -> Measurement
  ) async throws -> Measurement {
    let nowhere = Sink(kind: .external, host: "", port: 0, trustRoots: nil, process: nil)
    let htpasswd = rig.path("htpasswd")
    try Data(Self.htpasswd.utf8).write(to: URL(fileURLWithPath: htpasswd))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: htpasswd)
    return try await BenchPipeline.with(rig, sink: nowhere) { pipeline in
      let measurement = try await pipeline.withFrontEnd(registry: rig.path("accept.sqlite"), htpasswd: htpasswd) {
        api, port in
        let base = "http://127.0.0.1:\(port)"
        // A password that is not remembered yet may only be tried a few times at once.
        _ = try await APIClient(base: base).request("GET", "/api/sends?limit=1", user: "bench")
        return try await body(base, api)
      }
      let taken = try await pipeline.produced()
      guard taken == sends else { throw BenchError("\(sends) sends were posted, and \(taken) are on the topic") }
      return measurement
    }
  }

  /// The rate of the load with the CPU and memory of a server.
  private func measure(_ server: ChildProcess, _ load: () async throws -> Measurement) async throws -> Measurement {
    let before = try server.usage()
    var measurement = try await load()
    let after = try server.usage()
    measurement.setUsage(from: before, to: after)
    return measurement
  }
}
