import FanfareCore
import FoundationEssentials
import FrontEnd
import Logging
import Operations
import PushSimulator
import RDKafka
import Registry
import Roles
import Synchronization

/// Shows a broadcast: its progress, pause and resume, and that it survives the death of its worker.
struct BroadcastTour: Sendable {
  /// The longest time without progress. A killed worker is noticed after ten seconds.
  private static let patience = Duration.seconds(120)

  let devices: Int
  /// Whether the demo itself pauses the broadcast and kills the worker.
  let isOnce: Bool
  let frontEnd: FrontEnd
  let registry: RegistryDatabase
  let simulator: PushSimulator
  let worker: DemoWorker
  let strays: Strays
  let checks: [any ReadinessCheck]

  /// The next step of the demo's own part.
  private enum Step {
    case pause, resume, kill, nothing
  }

  /// A send as the HTTP API reports it.
  private struct Report: Decodable {
    struct Broadcast: Decodable {
      let pages: Int
      let finishedPages: Int
      let course: String
      let remainingSeconds: Double?
    }

    let id: String
    let state: String
    let counts: [String: [String: Int]]?
    let broadcast: Broadcast?

    var delivered: Int { counts?.values.reduce(0) { $0 + ($1["delivered"] ?? 0) } ?? 0 }
    var done: Int { counts?.values.flatMap(\.values).reduce(0, +) ?? 0 }
  }

  /// Devices in a page of the broadcast. A pause waits for a page, so there are at least 20.
  static func pageDevices(of devices: Int) -> Int { min(5_000, max(1, devices / 20)) }

  /// Pushes per second, slow enough for the user, or for the demo itself, to interfere.
  ///
  /// The broadcast takes ten seconds for few devices, three for many.
  private var rate: Int {
    guard isOnce else { return max(100, devices / 60) }
    return devices / (devices < 100_000 ? 10 : 3)
  }

  /// Runs the tour. Returns true if the ledger has every device exactly once and the devices agree.
  func run() async throws -> Bool {
    Console.print(
      "Fanfare \(Build.version): a broadcast. Kafka is embedded, the push services are simulated, the worker is a process of its own."
    )
    let api = APIClient(base: "http://127.0.0.1:\(try await frontEnd.boundPort())")
    try await Readiness(checks: checks).wait()
    Console.print(Demo.invitation(to: api.base))
    Console.print("Registering \(devices) devices …")
    try await register()
    try worker.start()
    defer { worker.kill() }
    let body = #"{"to":{"everyone":true},"message":{"title":"Goal!","body":"3 to 1"},"maxPerSecond":\#(rate)}"#
    let answer = try await api.request("POST", "/api/sends", user: "alice", body: body)
    let id = try JSONDecoder().decode(Report.self, from: answer).id
    if !isOnce {
      try await strays.post()
      showCommands(api, id)
    }
    let start = ContinuousClock.now
    let report = try await follow(id, api)
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let counts = simulator.store.counts()
    let arrived = counts.accepted - counts.duplicates
    Console.print(
      """
      {"devices":\(devices),"state":"\(report.state)","delivered":\(report.delivered),"arrived":\(arrived),\
      "repeated":\(counts.duplicates),"pages":\(report.broadcast?.pages ?? 0),"seconds":\((seconds * 100).rounded() / 100)}
      """)
    return arrived == report.delivered && (report.state == "cancelled" || report.done == devices)
  }

  /// 70 % Android, 28 % iPhones, 2 % Windows, 1.6 devices per user. Of those that somebody watches, 2 % fail.
  private func register() async throws {
    let now = SystemWallClock().now()
    for first in stride(from: 0, to: devices, by: 5_000) {
      let applications = (first..<min(first + 5_000, devices)).map { number in
        let (platform, handle): (Platform, String) =
          switch number % (isOnce ? 50 : 100) {
          case 53: (.fcm, "dead-device-\(number)")
          case 87: (.apns, "0413" + Population.handle(number).dropFirst(4))
          case 0..<35, 50..<85: (.fcm, "device-\(number)")
          case 35..<49, 85..<99: (.apns, Population.handle(number))
          default: (.wns, "https://cloud.notify.windows.com/?token=\(number)")
          }
        return DeviceRequest(
          installation: "demo-\(number)", hub: .default, user: "user-\(number * 5 / 8)", platform: platform,
          handle: handle)
      }
      _ = try await registry.install(applications, at: now)
    }
  }

  /// Shows progress until the broadcast settles, and replaces killed workers.
  ///
  /// Throws `DemoError` when progress stops, the worker fails, or the broadcast settles too soon.
  private func follow(_ id: String, _ api: APIClient) async throws -> Report {
    // The next output must begin on a new line.
    defer { if Console.isTerminal { Console.print() } }
    var step = Step.pause
    var last = (course: "", pages: 0, delivered: 0)
    var lastMove = ContinuousClock.now
    var failure: (any Error)?
    while true {
      if try worker.restartIfEnded() { say("The worker has ended; process \(worker.id ?? 0) takes over.") }
      var report: Report?
      // The ledger may not know it right after it was accepted.
      do { report = try await self.report(of: id, api) } catch { failure = error }
      if let report {
        progress(report)
        guard report.state == "accepted" else {
          if isOnce, step != .nothing { throw DemoError("the broadcast settled before its worker was killed twice") }
          return report
        }
        let course = report.broadcast?.course ?? ""
        let place = (course, report.broadcast?.finishedPages ?? 0, report.delivered)
        // The user may pause it for any time.
        if place != last || (course == "paused" && !isOnce) { (last, lastMove) = (place, .now) }
        if isOnce, let broadcast = report.broadcast, broadcast.pages > 0 { try await play(&step, broadcast, id, api) }
      }
      guard ContinuousClock.now - lastMove < Self.patience else {
        let reason = failure.map { ": \($0)" } ?? ""
        throw DemoError("the broadcast has made no progress for \(Self.patience.components.seconds) seconds\(reason)")
      }
      try await Task.sleep(for: .milliseconds(isOnce || Console.isTerminal ? 100 : 1000))
    }
  }

  private func report(of id: String, _ api: APIClient) async throws -> Report {
    try JSONDecoder().decode(Report.self, from: try await api.request("GET", "/api/sends/\(id)", user: "alice"))
  }

  /// Pauses at a quarter, kills the worker and resumes; kills the worker again at half.
  private func play(_ step: inout Step, _ broadcast: Report.Broadcast, _ id: String, _ api: APIClient) async throws {
    switch step {
    case .pause where broadcast.finishedPages * 4 >= broadcast.pages:
      _ = try await api.request("POST", "/api/sends/\(id)/pause", user: "alice", body: "")
      say("Paused.")
      worker.kill()
      say("Killed the worker (process \(worker.id ?? 0)).")
      step = .resume
    case .resume:
      _ = try await api.request("POST", "/api/sends/\(id)/resume", user: "alice", body: "")
      say("Resumed.")
      step = .kill
    case .kill where broadcast.finishedPages * 2 >= broadcast.pages:
      worker.kill()
      say("Killed the worker (process \(worker.id ?? 0)) in full swing.")
      step = .nothing
    case .pause, .kill, .nothing: break
    }
  }

  private func progress(_ report: Report) {
    guard let broadcast = report.broadcast else { return }
    let remaining = broadcast.remainingSeconds.map { " · \(Int($0.rounded(.up))) s left" } ?? ""
    let line =
      "  \(broadcast.course) · \(broadcast.finishedPages) of \(broadcast.pages) pages · delivered \(report.delivered) of \(devices)\(remaining)"
    if Console.isTerminal { Console.overwrite(line) } else { Console.print(line) }
  }

  private func say(_ line: String) {
    if Console.isTerminal { Console.print() }
    Console.print(line)
  }

  private func showCommands(_ api: APIClient, _ id: String) {
    Console.print(
      """

      The broadcast is under way. Try, in another terminal:

        curl -u alice:alice \(api.base)/api/sends/\(id)
        curl -u alice:alice -X POST \(api.base)/api/sends/\(id)/pause
        curl -u alice:alice -X POST \(api.base)/api/sends/\(id)/resume
        curl -u alice:alice -X POST \(api.base)/api/sends/\(id)/cancel
        kill -9 \(worker.id ?? 0)

      """)
  }
}

/// Two records that no worker can process, so that there are dead letters to look at.
struct Strays {
  let client: KafkaClientConfiguration
  let topics: Topics
  let logger: Logger

  func post() async throws {
    let producer = try Producer(configuration: ProducerConfiguration(client: client), logger: logger)
    async let running: Void = producer.run()
    let id = SendID.random()
    let stranger = #"{"specversion":"1.0","id":"\#(id)","type":"fanfare.send.v9","source":"/stranger","data":{}}"#
    let records = ["not a CloudEvent", stranger].map {
      ProducerRecord(topic: topics.sends, key: Array("stray".utf8), value: Array($0.utf8))
    }
    for result in await producer.send(records) { _ = try result.get() }
    await producer.close(timeout: .seconds(5))
    await running
  }
}

/// A worker in another process, which can be killed and replaced.
final class DemoWorker: Sendable {
  private let directory: URL
  private let environment: [String: String]
  private let current = Mutex<ChildProcess?>(nil)

  /// Creates the worker without starting it. The environment configures the worker.
  init(directory: URL, environment: [String: String]) {
    self.directory = directory
    self.environment = environment
  }

  /// Starts the process.
  func start() throws {
    let process = try ChildProcess.role(
      ["worker"], environment: environment, inWorkshop: true, directory: directory)
    current.withLock { $0 = process }
  }

  /// The id of the process; nil before there is one.
  var id: Int32? { current.withLock { $0?.id } }

  /// Kills the process.
  func kill() { current.withLock { $0 }?.destroy() }

  /// Starts a new process if the last one was killed; returns whether it did.
  ///
  /// Throws, with the end of the log, if the last process failed by itself.
  func restartIfEnded() throws -> Bool {
    guard let process = current.withLock({ $0 }), !process.isRunning else { return false }
    guard !process.hasFailed else { throw DemoError("the worker has failed\n\(process.lastWords)") }
    try start()
    return true
  }
}
