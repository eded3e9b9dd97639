import FanfareCore
import FoundationEssentials
import FrontEnd
import Ledger
import Operations
import PushSimulator

/// What a visitor is shown: people register, notifications arrive on their devices, then a stream of sends.
struct Tour: Sendable {
  let sends: Int
  let isOnce: Bool
  let frontEnd: FrontEnd
  let simulator: PushSimulator
  let ledger: any LedgerStorage
  let endpoints: SimulatorEndpoints
  let checks: [any ReadinessCheck]

  /// Walks through it. True if every send was accepted and settled and nothing was lost.
  func run() async throws -> Bool {
    Console.print(
      "Fanfare \(Build.version): everything in one process. Kafka is embedded, in memory and volatile; the push services are simulated."
    )
    let api = APIClient(base: "http://127.0.0.1:\(try await frontEnd.boundPort())")
    try await Readiness(checks: checks).wait()
    let visitors = Visitors(users: 500)
    Console.print("The HTTP API listens on \(api.base)\n")
    try await register(visitors.guests, with: api, isShown: true)
    try await showArrivals(visitors, with: api)
    try await register(visitors.crowd, with: api, isShown: false)
    let report = try await Stream(sends: sends, users: visitors.users, api: api, simulator: simulator, ledger: ledger).run()
    guard !isOnce else {
      Console.print(report.json)
      return report.isComplete(of: sends)
    }
    Console.print(report.json)
    showCommands(api)
    try await follow(visitors)
    return report.isComplete(of: sends)
  }

  private func register(_ devices: [Visitors.Device], with api: APIClient, isShown: Bool) async throws {
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

  /// Sends to the guests as the tutorial's apps do, and shows what arrives on their devices.
  private func showArrivals(_ visitors: Visitors, with api: APIClient) async throws {
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
    var count = 0
    for await notification in arrivals {
      show(notification, visitors)
      count += 1
      if count == posts.count { break }
    }
  }

  private func show(_ notification: ReceivedNotification, _ visitors: Visitors) {
    guard
      let device = visitors.guests.first(where: { device in
        device.platform == notification.platform
          && (device.handle == notification.handle || device.handle.hasSuffix(notification.handle))
      })
    else { return }
    Console.print("  arrived     on \(device.name): \(notification.text)")
  }

  /// Shows what arrives on the guests' devices until the visitor ends the demo.
  private func follow(_ visitors: Visitors) async throws {
    for await notification in simulator.store.events() { show(notification, visitors) }
  }

  private func showCommands(_ api: APIClient) {
    Console.print(
      """

      It stays up for you (control-C ends it). A user's password is the name. Try:

        curl -u bob:bob -H 'Content-Type: application/json' -d '"Hello"' '\(api.base)/api/notifications?pns=apns&to_tag=alice'
        curl -u bob:bob -H 'Content-Type: application/json' -d '{"to":{"user":"carol"},"message":{"title":"Hi","body":"Lunch?"}}' \(api.base)/api/sends
        curl -u bob:bob \(api.base)/api/sends/ID
        curl \(api.base)/readyz
        curl \(api.base)/metrics
        curl '\(endpoints.adminURL)/counts'
        curl '\(endpoints.adminURL)/devices?limit=3'

      """)
  }
}
