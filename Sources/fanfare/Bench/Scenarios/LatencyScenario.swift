import FanfareCore
import HTTP2Session
import NIOCore
import PushSimulator
import Synchronization

/// Posts at a fixed rate through the front end: how long until they are answered, and until the push is at the push service.
struct LatencyScenario: BenchScenario {
  let name = "latency"

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let users = rig.options.scaled(100_000)
    let registry = rig.path("latency.sqlite")
    try await Population.iPhones(users).register(in: registry)
    var reports: [ScenarioReport] = []
    for rate in rig.options.isQuick ? [100] : [1000, 10_000] {
      let (answered, arrived) = try await Self.run(
        rig, registry: registry, users: users, rate: rate, seconds: rig.options.isQuick ? 2 : 10)
      var report = ScenarioReport(
        scenario: "\(name), \(rate)/s", unit: "sends", sink: "in this process",
        goals: rate == 10_000
          ? [.p99("push at the sink", 100)] : [.p99("POST answered", 15), .p99("push at the sink", 30)])
      report.latencies = [("POST answered", answered), ("push at the sink", arrived)]
      reports.append(report)
    }
    return reports
  }

  /// How long each of the posts took, and each of their pushes. `broadcast`: the body of a send that is posted before, and whose pushes are under way
  /// meanwhile; throws when they are not.
  static func run(
    _ rig: BenchRig, registry: String, users: Int, rate: Int, seconds: Int, broadcast: String? = nil
  ) async throws -> (Latency, Latency) {
    let arrivals = Mutex<[Int64]>([])
    let others = Atomic<Int>(0)
    let server = HTTP2Server(
      configuration: HTTP2ServerConfiguration(tls: try .sink(rig.credentials)), eventLoopGroup: rig.eventLoopGroup,
      logger: rig.logger
    ) { request, responder in
      if let due = DueTime.read(from: request.body) {
        let time = (NIODeadline.now() - due).nanoseconds
        arrivals.withLock { $0.append(time) }
      } else {
        others.add(1, ordering: .relaxed)
      }
      responder.respond(status: 200)
    }
    try await server.start()
    let sink = Sink(
      kind: .external, host: "127.0.0.1", port: server.boundPort ?? 0,
      trustRoots: rig.key(SimulatorCredentials.FileName.authority),
      process: nil)
    // One second to warm up.
    let (warmUp, count) = (rate, rate * seconds)
    let answers = try await BenchPipeline.with(rig, sink: sink, counting: .records) { pipeline in
      try await pipeline.withFrontEnd(registry: registry) { _, port in
        try await pipeline.withWorker(registry: registry, connections: 1) { worker in
          try await Ready.wait(for: worker)
          func post(_ count: Int, _ fixed: String? = nil) async throws -> [Int64] {
            try await OpenLoop(
              host: "127.0.0.1", port: port, path: "/api/sends",
              headers: [
                ("host", "127.0.0.1"), ("authorization", "Basic YmVuY2g6YmVuY2g="), ("content-type", "application/json"),
              ],
              rate: rate, count: count, connections: min(256, max(16, rate / 10))
            ).run(on: rig.eventLoopGroup) { due in
              fixed
                ?? #"{"to":{"user":"\#(Population.user(Int(due.uptimeNanoseconds / 1000 % UInt64(users))))"},"message":{"body":"\#(DueTime.text(due))"}}"#
            }
          }
          _ = try await post(warmUp)
          _ = try await pipeline.sample(worker, at: warmUp)
          arrivals.withLock { $0 = [] }
          guard let broadcast else {
            let answers = try await post(count)
            _ = try await pipeline.sample(worker, at: warmUp + count)
            return answers
          }
          _ = try await post(1, broadcast)
          try await withTimeLimit(.seconds(60), "the broadcast to begin") {
            while others.load(ordering: .relaxed) == 0 { try await Task.sleep(for: .milliseconds(10)) }
          }
          let answers = try await post(count)
          let before = others.load(ordering: .relaxed)
          try await withTimeLimit(.seconds(60), "the pushes to arrive") {
            while arrivals.withLock({ $0.count }) < count { try await Task.sleep(for: .milliseconds(10)) }
          }
          try await Task.sleep(for: .milliseconds(500))
          guard others.load(ordering: .relaxed) > before else { throw BenchError("the broadcast was over too early") }
          return answers
        }
      }
    }
    await server.close()
    let times = arrivals.withLock { $0 }
    guard times.count == count, let answered = Latency(nanoseconds: answers), let arrived = Latency(nanoseconds: times) else {
      throw BenchError("\(count) sends were accepted; \(times.count) pushes arrived")
    }
    return (answered, arrived)
  }
}
