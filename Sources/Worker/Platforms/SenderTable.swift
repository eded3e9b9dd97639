import FanfareCore

/// The senders of all hubs by number, so that the hot path indexes an array instead of hashing
/// names.
struct SenderTable: Sendable {
  /// The hubs of this deployment, by number.
  private(set) var hubs: [HubName]
  /// One place for each hub and platform; nil where the hub has no sender.
  private(set) var senders: [(any PushSender)?]
  private var numbers: [HubName: Int]

  init(_ senders: [HubName: [Platform: any PushSender]]) {
    let hubs = senders.keys.sorted { $0.rawValue < $1.rawValue }
    self.hubs = hubs
    numbers = Dictionary(uniqueKeysWithValues: hubs.enumerated().map { ($1, $0) })
    self.senders = hubs.flatMap { hub in Platform.allCases.map { senders[hub]?[$0] } }
  }

  /// Adds a hub that has registrations and no senders. The numbers of the others do not change.
  mutating func append(_ hub: HubName) {
    numbers[hub] = hubs.count
    hubs.append(hub)
    senders += Platform.allCases.map { _ in nil }
  }

  /// The number of the hub's place for the platform, whether or not it has a sender.
  static func place(hub: Int, platform: Platform) -> Int { hub * Platform.count + platform.ordinal }

  /// The numbers of the hub's places.
  static func places(of hub: Int) -> Range<Int> {
    hub * Platform.count..<(hub + 1) * Platform.count
  }

  /// The hub's number; nil when this deployment does not serve it.
  func number(of hub: HubName) -> Int? { numbers[hub] }

  /// The number of the hub's sender for the platform; -1 when it has none.
  func sender(hub: Int, platform: Platform) -> Int {
    let number = Self.place(hub: hub, platform: platform)
    return senders[number] == nil ? -1 : number
  }

  func hub(ofSender sender: Int) -> HubName { hubs[sender / Platform.count] }
  func platform(ofSender sender: Int) -> Platform { Platform.allCases[sender % Platform.count] }

  /// A readiness problem of the sender's hub. Its text begins with `hub/platform: `.
  func problem(ofSender sender: Int, _ text: String) -> ReadinessProblem {
    let hub = hub(ofSender: sender)
    return ReadinessProblem("\(hub)/\(platform(ofSender: sender)): \(text)", hubs: [hub])
  }
}
