import FanfareCore
import FoundationEssentials
import FrontEnd
import Ledger
import Operations
import PushSimulator
import Roles
import Synchronization

/// Shows users that register, notifications that arrive on their devices, and a stream of sends.
struct Tour: Sendable {
  let sends: Int
  let isOnce: Bool
  let frontEnd: FrontEnd
  let operations: OperationsServer
  let simulator: PushSimulator
  let ledger: any LedgerStore
  let endpoints: SimulatorEndpoints
  let checks: [any ReadinessCheck]

  /// Runs the tour. Returns true if every send was settled and nothing was lost.
  func run() async throws -> Bool {
    Console.print(
      "Fanfare \(Build.version): everything in one process. Kafka is embedded, in memory and volatile; the push services are simulated."
    )
    let api = APIClient(base: "http://127.0.0.1:\(try await frontEnd.boundPort())")
    try await Readiness(checks: checks).wait()
    let visitors = DemoPopulation(users: 500)
    let operations = "http://127.0.0.1:\(try await operations.boundPort())"
    Console.print("The HTTP API listens on \(api.base), health and metrics on \(operations)")
    Console.print(Demo.invitation(to: api.base) + "\n")
    try await register(visitors.guests, with: api, isShown: true)
    try await showArrivals(visitors, with: api)
    try await register(visitors.crowd, with: api, isShown: false)
    let report = try await Stream(sends: sends, users: visitors.users, api: api, simulator: simulator, ledger: ledger)
      .run()
    guard !isOnce else {
      Console.print(report.json)
      return report.isComplete(of: sends)
    }
    Console.print(report.json)
    showCommands(api, operations)
    try await follow(visitors)
    return report.isComplete(of: sends)
  }

  private func register(_ devices: [DemoPopulation.Device], with api: APIClient, isShown: Bool) async throws {
    if !isShown { Console.print("\nRegistering \(devices.count) more devices through the HTTP API …") }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, device) in devices.enumerated() {
        if index >= 16 { try await group.next() }
        group.addTask {
          _ = try await api.request("POST", "/api/register", user: device.owner, body: device.body)
          if isShown { Console.print("  registered  \(device.name) (\(device.platform))") }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Sends to the guests like the tutorial's apps, and shows what arrives.
  private func showArrivals(_ visitors: DemoPopulation, with api: APIClient) async throws {
    let posts: [(from: String, to: String, platforms: String, text: String)] = [
      ("bob", "alice", "apns", "Hello from Kafka"), ("alice", "bob", "gcm", #"Quotes " and <tags> arrive whole"#),
      ("alice", "carol", "apns", "Lunch?"), ("alice", "carol", "wns", "Lunch? 🍜"),
    ]
    let arrivals = simulator.store.events()
    Console.print()
    for post in posts {
      let body = String(decoding: try JSONEncoder().encode(post.text), as: UTF8.self)
      _ = try await api.request(
        "POST", "/api/notifications?pns=\(post.platforms)&to_tag=\(post.to)", user: post.from, body: body,
        type: "application/json;charset=utf-8")
      Console.print("  sent        \(post.from) to \(post.to) (\(post.platforms))")
    }
    // Every device receives one.
    try await Self.show(arrivals, untilAllHaveOne: visitors.guests)
    // Later settlements would count for the stream.
    try await Self.wait(for: posts.count) { try await ledger.totals(hub: .default).settled }
  }

  /// Shows arrivals until each device has one.
  ///
  /// Throws `TimeLimitExceeded` with the names of the devices without any.
  static func show(
    _ arrivals: AsyncStream<ReceivedNotification>, untilAllHaveOne devices: [DemoPopulation.Device],
    within limit: Duration = .seconds(60)
  ) async throws {
    let missing = Mutex(devices.map(\.name))
    try await withTimeLimit(limit, "what was sent to \(missing.withLock { $0.joined(separator: ", ") })") {
      for await notification in arrivals {
        let name = show(notification, devices)
        let isOver = missing.withLock { missing in
          missing.removeAll { $0 == name }
          return missing.isEmpty
        }
        if isOver { return }
      }
      // Only cancellation ends the arrivals.
      throw CancellationError()
    }
  }

  /// Suspends until this many sends are settled. Throws `TimeLimitExceeded`.
  static func wait(for sends: Int, settled: @escaping @Sendable () async throws -> Int) async throws {
    try await withTimeLimit(.seconds(60), "\(sends) sends to be settled") {
      while try await settled() < sends { try await Task.sleep(for: .milliseconds(20)) }
    }
  }

  /// Prints an arrival on one of the devices. Returns the device's name; nil for another device.
  @discardableResult
  private static func show(_ notification: ReceivedNotification, _ devices: [DemoPopulation.Device]) -> String? {
    let device = devices.first { device in
      device.platform == notification.platform
        && (device.handle == notification.handle || device.handle.hasSuffix(notification.handle))
    }
    guard let device else { return nil }
    Console.print("  arrived     on \(device.name): \(notification.text)")
    return device.name
  }

  /// Prints arrivals on the guests' devices until the user ends the demo.
  private func follow(_ visitors: DemoPopulation) async throws {
    for await notification in simulator.store.events() { Self.show(notification, visitors.guests) }
  }

  private func showCommands(_ api: APIClient, _ operations: String) {
    Console.print(
      """

      It stays up for you (control-C ends it). A user's password is the name. Try:

        curl -u bob:bob -H 'Content-Type: application/json' -d '"Hello"' '\(api.base)/api/notifications?pns=apns&to_tag=alice'
        curl -u bob:bob -H 'Content-Type: application/json' -d '{"to":{"user":"carol"},"message":{"title":"Hi","body":"Lunch?"}}' \(api.base)/api/sends
        curl -u bob:bob \(api.base)/api/sends/ID
        curl \(operations)/readyz
        curl \(operations)/metrics
        curl '\(endpoints.adminURL)/counts'
        curl '\(endpoints.adminURL)/devices?limit=3'

      """)
  }
}
