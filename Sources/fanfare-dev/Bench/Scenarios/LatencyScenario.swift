import FanfareCore
import HTTP2
import NIOCore
import PushSimulator
import Roles
import Synchronization

/// The latency at a fixed rate of posts: until the answer, and until the push reaches the push service.
struct LatencyScenario: BenchScenario {
  let name = "latency"

  /// The pushes that reached the sink.
  private final class Arrivals: Sendable {
    /// The latencies of pushes from the due time of their post, in nanoseconds.
    let times = Mutex<[Int64]>([])
    /// The number of other pushes.
    let others = Atomic<Int>(0)
  }

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let users = rig.options.scaled(100_000)
    let registry = rig.path("latency.sqlite")
    try await Population.iPhones(users).register(in: registry)
    var reports: [ScenarioReport] = []
    for rate in rig.options.isQuick ? [100] : [1000, 10_000] {
      let (answered, arrived, _) = try await Self.run(
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

  /// Measures the latencies of posts and of their pushes.
  ///
  /// `broadcast` is the body of a send to all users that runs meanwhile; it is posted again when half of its pushes
  /// have arrived. `others` is the rate of its pushes. Throws if there were none.
  static func run(
    _ rig: BenchRig, registry: String, users: Int, rate: Int, seconds: Int, broadcast: String? = nil
  ) async throws -> (answered: Latency, arrived: Latency, others: Double) {
    let arrivals = Arrivals()
    let server = HTTP2Server(
      configuration: HTTP2ServerConfiguration(tls: try .sink(rig.credentials)), eventLoopGroup: rig.eventLoopGroup,
      logger: rig.logger
    ) { request, responder in
      if let due = DueTime.read(from: request.body) {
        let time = (NIODeadline.now() - due).nanoseconds
        arrivals.times.withLock { $0.append(time) }
      } else {
        arrivals.others.add(1, ordering: .relaxed)
      }
      responder.respond(status: 200)
    }
    try await server.start()
    let sink = Sink(
      kind: .external, host: "127.0.0.1", port: server.boundPort ?? 0,
      trustRoots: rig.key(SimulatorCredentials.FileName.authority),
      process: nil)
    let (warmUp, count) = (rate, rate * seconds)
    let (answers, others) = try await BenchPipeline.with(rig, sink: sink) { pipeline -> ([Int64], Double) in
      try await pipeline.withFrontEnd(registry: registry) { _, port -> ([Int64], Double) in
        try await pipeline.withWorker(registry: registry, connections: 1) { worker -> ([Int64], Double) in
          try await Ready.wait(for: worker)
          @Sendable func post(_ count: Int, from first: Int = 0, _ fixed: String? = nil) async throws -> [Int64] {
            try await OpenLoop(
              host: "127.0.0.1", port: port, path: "/api/sends",
              headers: [
                ("host", "127.0.0.1"), ("authorization", "Basic YmVuY2g6YmVuY2g="),
                ("content-type", "application/json"),
              ],
              rate: rate, count: count, connections: min(256, max(16, rate / 10))
            ).run(on: rig.eventLoopGroup) { fixed ?? Self.body(of: first + $0, users: users, text: DueTime.text($1)) }
          }
          _ = try await post(warmUp)
          _ = try await pipeline.sample(worker, at: warmUp)
          arrivals.times.withLock { $0 = [] }
          guard let broadcast else {
            let answers = try await post(count, from: warmUp)
            _ = try await pipeline.sample(worker, at: warmUp + count)
            return (answers, 0)
          }
          return try await withThrowingTaskGroup(of: ([Int64], Double).self) { group in
            group.addTask { () -> ([Int64], Double) in
              var posted = 0
              while true {
                _ = try await post(1, broadcast)
                posted += users
                // The next one is posted at half, because a new broadcast takes a while to start.
                while arrivals.others.load(ordering: .relaxed) < posted - users / 2 {
                  try await Task.sleep(for: .milliseconds(5))
                }
              }
            }
            group.addTask {
              try await withTimeLimit(.seconds(60), "the broadcast to begin") {
                while arrivals.others.load(ordering: .relaxed) == 0 { try await Task.sleep(for: .milliseconds(5)) }
              }
              let (start, before) = (ContinuousClock.now, arrivals.others.load(ordering: .relaxed))
              let answers = try await post(count, from: warmUp)
              let others = Double(arrivals.others.load(ordering: .relaxed) - before) / ((.now - start) / .seconds(1))
              try await withTimeLimit(.seconds(60), "the pushes to arrive") {
                while arrivals.times.withLock({ $0.count }) < count { try await Task.sleep(for: .milliseconds(10)) }
              }
              guard others > 0 else { throw BenchError("the broadcast made no progress") }
              return (answers, others)
            }
            defer { group.cancelAll() }
            guard let first = try await group.next() else { throw CancellationError() }
            return first
          }
        }
      }
    }
    await server.close()
    let times = arrivals.times.withLock { $0 }
    guard times.count == count, let answered = Latency(nanoseconds: answers), let arrived = Latency(nanoseconds: times)
    else {
      throw BenchError("\(count) sends were accepted; \(times.count) pushes arrived")
    }
    return (answered, arrived, others)
  }

  /// The body of a post to one user.
  static func body(of number: Int, users: Int, text: String) -> String {
    // Consecutive posts go to different users, so that their registrations are not cached.
    #"{"to":{"user":"\#(Population.user((number &* 7919) % users))"},"message":{"body":"\#(text)"}}"#
  }
}

/// The due time of a post, carried in its text to the device.
enum DueTime {
  private static let mark = Array("due=".utf8)

  /// The text to send.
  static func text(_ due: NIODeadline) -> String { "due=\(due.uptimeNanoseconds)" }

  /// The due time in a payload; nil if there is none.
  static func read(from payload: [UInt8]) -> NIODeadline? {
    // A search by hand, because the library's takes microseconds per push.
    guard payload.count > mark.count,
      let start = (0..<(payload.count - mark.count)).first(where: { start in
        payload[start] == mark[0] && payload[start..<(start + mark.count)].elementsEqual(mark)
      })
    else { return nil }
    let digits = payload[(start + mark.count)...].prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    return UInt64(String(decoding: digits, as: UTF8.self)).map(NIODeadline.uptimeNanoseconds)
  }
}
