import FanfareCore
import FoundationEssentials
import PushSimulator

/// A realistic mix of devices, errors and message sizes. The simulator validates all pushes.
///
/// Users have one to four devices on three platforms, some of them dead. The services throttle now and then.
struct MixedScenario: BenchScenario {
  let name = "mixed"

  /// Connections to APNs, and the same number to FCM. WNS, one push in fifty, uses HTTP/1.1.
  private static let connections = 1

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let (users, sends) = (rig.options.scaled(20_000), rig.options.scaled(60_000, floor: 500))
    let population = Self.population(users: users)
    let registry = rig.path("mixed.sqlite")
    try await population.register(in: registry)
    let sink = try await Sink.simulator(rig)
    defer { sink.stop() }
    guard case .simulator(let adminURL, _) = sink.kind else { throw BenchError("the sink is no simulator") }
    let admin = APIClient(base: adminURL)
    // The ceiling sends the product's average size.
    let size = Self.bodies.map(\.utf8.count).reduce(0, +) / Self.bodies.count
    let body = Array(#"{"aps":{"alert":{"body":"\#(String(repeating: "x", count: size))"}}}"#.utf8)
    let pushes = sends * population.devices.count / users
    let pairs = try await bench.pairs {
      try await bench.ceiling?.run(sink, pushes: pushes, connections: 2 * Self.connections, body: body)
    } product: {
      for (service, status, reason) in [
        ("apns", 429, "TooManyRequests"), ("fcm", 429, "QUOTA_EXCEEDED"), ("wns", 406, ""),
      ] {
        _ = try await admin.request(
          "POST", "/faults", user: "bench",
          body:
            #"{"service":"\#(service)","action":"answer","status":\#(status),"reason":"\#(reason)","retryAfter":1,"share":0.01}"#
        )
      }
      // Dead devices are unregistered by a run, so each run starts with a copy.
      let copy = rig.path("mixed-\(SendID.random()).sqlite")
      try FileManager.default.copyItem(atPath: registry, toPath: copy)
      let measurement = try await run(
        rig, sink: sink, registry: copy, population: population, users: users, sends: sends)
      _ = try await admin.request("DELETE", "/faults", user: "bench")
      return measurement
    }
    return [
      ScenarioReport(
        scenario: name, unit: "pushes", connections: 2 * Self.connections, sink: sink.name, pairs: pairs,
        goals: [.share(0.3), .multiple(6), .memory(150)])
    ]
  }

  private func run(
    _ rig: BenchRig, sink: Sink, registry: String, population: Population, users: Int, sends: Int
  ) async throws -> Measurement {
    let before = try await sink.accepted()
    return try await BenchPipeline.with(rig, sink: sink) { pipeline in
      try await pipeline.produce(
        (0..<sends).lazy.map { number in
          Population.send(
            to: .user(Population.user(Self.user(ofSend: number, of: users))), number: number,
            body: Self.bodies[number % Self.bodies.count])
        })
      // At the start the worker waits for the first batches, and at the end for the last retries. Neither time shows
      // the machine's limit.
      let (first, last) = (sends / 10, sends * 9 / 10)
      let (start, end) = try await pipeline.withWorker(registry: registry, connections: Self.connections) { worker in
        let start = try await pipeline.sample(worker, at: first)
        let end = try await pipeline.sample(worker, at: last)
        _ = try await pipeline.sample(worker, at: sends)
        return (start, end)
      }
      let results = try await pipeline.results()
      // A dead device whose push was throttled may have been unregistered by another send's result.
      let strange = results.first {
        $0.outcome != .delivered && $0.outcome != .deviceGone && $0.reason != "NoLongerRegistered"
      }
      if let strange { throw BenchError("a device's result is \(strange.outcome.rawValue) \(strange.reason)") }
      let (delivered, live) = (
        results.count { $0.outcome == .delivered }, Self.liveDevices(of: population, users: users, sends: sends)
      )
      guard delivered == live else {
        throw BenchError("\(delivered) pushes were delivered; the users have \(live) live devices")
      }
      try await pipeline.checkSink(delivered: delivered, before: before)
      // If the results are so few that they all came at once, all of them count.
      let measured = try await pipeline.results(from: start, to: end).count
      return Measurement(count: measured > 0 ? measured : results.count, from: start, to: end)
    }
  }

  private static func user(ofSend number: Int, of users: Int) -> Int { (number &* 7919) % users }

  /// The number of live devices that the sends go to.
  static func liveDevices(of population: Population, users: Int, sends: Int) -> Int {
    var live = [Int](repeating: 0, count: users)
    for device in population.devices where !device.isDead { live[device.owner] += 1 }
    return (0..<sends).reduce(0) { $0 + live[user(ofSend: $1, of: users)] }
  }

  /// Bodies for payloads of 200 to 4,096 bytes.
  private static let bodies = stride(from: 100, through: 3900, by: 380).map {
    String(repeating: "fanfare ", count: $0 / 8)
  }

  /// One to four devices each; 70 % Android, 28 % iPhone, 2 % Windows; every fiftieth is dead.
  static func population(users: Int) -> Population {
    var generator = SplitMix64(seed: 1)
    var devices: [Population.Device] = []
    for user in 0..<users {
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let number = devices.count
        let isDead = Int.random(in: 0..<50, using: &generator) == 0
        let handle = Population.handle(number, prefix: "5e")
        var device = Population.Device(number: number, owner: user, handle: handle, isDead: isDead)
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<70: (device.platform, device.handle) = (.fcm, (isDead ? "dead-" : "live-") + handle)
        case 70..<98: if isDead { device.handle = Population.handle(number, prefix: "dead") }
        default:
          device.platform = .wns
          device.handle = "https://cloud.notify.windows.com/?token=\(isDead ? "dead" : "live")\(handle)"
        }
        devices.append(device)
      }
    }
    return Population(devices: devices)
  }
}
