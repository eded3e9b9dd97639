import FanfareCore
import Roles
import Store

/// A very large, realistic set of registrations.
///
/// It has 1.6 devices a user, 70 % of them on FCM, 28 % on APNs and 2 % on WNS. A few tags are on very many devices,
/// and very many tags are on few. All values are computed from the seed and the device's number, so they need no
/// memory.
struct Crowd: Sendable {
  /// The number of devices.
  let devices: Int
  /// The number of users. Each has at least one device; the other devices belong to random users.
  let users: Int
  /// The time of all registrations, in Unix milliseconds.
  let registeredAt: Int64
  private let seed: UInt64
  private let isApple: Bool

  /// Tags by the share of devices that carry them.
  private static let popular: [(name: String, share: Double)] = [
    ("news", 0.4), ("sport", 0.2), ("weather", 0.1), ("traffic", 0.05), ("beta", 0.01),
  ]
  /// The number of rare tags.
  ///
  /// Half of all devices carry one, the first of them much more often than the last.
  private static let rareTags = 200_000.0

  /// Creates a crowd, with `isApple` of iPhones only, for a sink that supports only APNs.
  init(devices: Int, isApple: Bool = false, seed: UInt64 = 1) {
    self.devices = devices
    self.isApple = isApple
    // An hour before the sends.
    registeredAt = SystemWallClock().now().milliseconds - 3_600_000
    users = max(1, devices * 10 / 16)
    self.seed = seed
  }

  /// A device of the crowd.
  struct Device {
    let id: RegistrationID
    let user: Int
    let platform: Platform
    let handle: [UInt8]
    let tags: [String]
  }

  /// The device with this number.
  func device(_ number: Int) -> Device {
    var random = generator(number)
    let id = RegistrationID.random(using: &random)
    let owner = user(of: number)
    let platform: Platform =
      switch Double.random(in: 0..<1, using: &random) {
      case _ where isApple: .apns
      case ..<0.7: .fcm
      case ..<0.98: .apns
      default: .wns
      }
    var tags = [Tag.username(Population.user(owner))]
    for tag in Self.popular where Double.random(in: 0..<1, using: &random) < tag.share { tags.append(tag.name) }
    if Bool.random(using: &random) {
      // The cube of an even distribution: more than half of these devices carry a fifth of the tags.
      let share = Double.random(in: 0..<1, using: &random)
      tags.append("topic-\(Int(share * share * share * Self.rareTags))")
    }
    return Device(id: id, user: owner, platform: platform, handle: Self.handle(platform, using: &random), tags: tags)
  }

  /// The registration of the device with this number.
  func registration(_ number: Int) -> Registration {
    let (device, time) = (device(number), UnixTime(milliseconds: registeredAt))
    return Registration(
      id: device.id, hub: .default, user: Population.user(device.user), platform: device.platform,
      handle: String(decoding: device.handle, as: UTF8.self), tags: device.tags.sorted(), installation: nil,
      registeredAt: time,
      createdAt: time)
  }

  /// The number of devices of each user.
  func devicesByUser() -> [UInt8] {
    var counts = [UInt8](repeating: 0, count: users)
    for number in 0..<devices { counts[user(of: number)] &+= 1 }
    return counts
  }

  private func user(of number: Int) -> Int {
    guard number >= users else { return number }
    var random = SplitMix64(seed: seed ^ UInt64(number) &* 0x9FB2_1C65_1E98_DF25)
    return Int.random(in: 0..<users, using: &random)
  }

  private func generator(_ number: Int) -> SplitMix64 {
    // The seeds are spread, because neighbouring seeds of SplitMix64 give the same numbers one step apart.
    SplitMix64(seed: seed ^ UInt64(number) &* 0xD129_0B26_88D6_4A7D)
  }

  /// A random handle, as long as those that the push services issue.
  private static func handle(_ platform: Platform, using random: inout SplitMix64) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(192)
    switch platform {
    case .apns:
      // This prefix asks a simulator for no fault.
      text.append(contentsOf: "5e".utf8)
      append(62, of: hexadecimal, to: &text, using: &random)
    case .fcm:
      append(22, of: base64, to: &text, using: &random)
      text.append(contentsOf: ":APA91b".utf8)
      append(134, of: base64, to: &text, using: &random)
    default:
      text.append(contentsOf: "https://db5p.notify.windows.com/?token=".utf8)
      append(120, of: base64, to: &text, using: &random)
    }
    return text
  }

  private static let base64 = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
  private static let hexadecimal = Array("0123456789abcdef".utf8)

  /// Appends `count` random characters of the alphabet, whose size is a power of two up to 64.
  private static func append(_ count: Int, of alphabet: [UInt8], to text: inout [UInt8], using random: inout SplitMix64)
  {
    var word: UInt64 = 0
    for index in 0..<count {
      // A word gives ten characters of six bits.
      if index % 10 == 0 { word = random.next() }
      text.append(alphabet[Int(word & 63) % alphabet.count])
      word >>= 6
    }
  }
}

extension Crowd {
  /// Fills the tables of a new registry with COPY, and builds their keys afterwards.
  func load(into pool: PostgreSQLPool) async throws {
    let keys = [("registrations", "hub, id"), ("handles", "hub, handle"), ("tags", "hub, tag, registration")]
    try await pool.withConnection { connection in
      for (table, _) in keys { try connection.execute("ALTER TABLE \(table) DROP CONSTRAINT \(table)_pkey") }
    }
    try await withThrowingTaskGroup { group in
      group.addTask { try await copy(into: "registrations", pool, writeRegistration) }
      group.addTask { try await copy(into: "handles", pool, writeHandle) }
      group.addTask { try await copy(into: "tags", pool, writeTags) }
      try await group.waitForAll()
    }
    for (table, key) in keys {
      try await pool.withConnection { connection in
        try connection.execute("ALTER TABLE \(table) ADD PRIMARY KEY (\(key))")
        // VACUUM also marks pages as visible to all transactions; otherwise the first readers would do that work.
        try connection.execute("VACUUM (ANALYZE) \(table)")
      }
    }
  }

  private func copy(
    into table: String, _ pool: PostgreSQLPool, _ write: @escaping @Sendable (Device, inout CopyWriter) throws -> Void
  ) async throws {
    try await pool.transaction { connection in
      // A table truncated in the same transaction accepts frozen rows, which VACUUM need not write again.
      try connection.execute("TRUNCATE \(table)")
      _ = try connection.copyIn("COPY \(table) \(Self.columns[table] ?? "") FROM STDIN (FORMAT binary, FREEZE)") {
        rows in
        for number in 0..<devices { try write(device(number), &rows) }
      }
    }
  }

  private static let columns = [
    "registrations": "(hub, id, username, platform, handle, tags, registered_at, created_at)",
    "handles": "(hub, handle, registration, platform, registered_at)",
    "tags": "(hub, tag, registration, platform, handle, registered_at, created_at)",
  ]

  @Sendable private func writeRegistration(_ device: Device, _ rows: inout CopyWriter) throws {
    try rows.row(columns: 8)
    rows.text(HubName.default.rawValue)
    rows.uuid(high: device.id.high, low: device.id.low)
    rows.text(Population.user(device.user))
    rows.int2(Int16(device.platform.code))
    rows.text(utf8: device.handle)
    rows.value(.texts(device.tags.sorted()))
    rows.int8(registeredAt)
    rows.int8(registeredAt)
  }

  @Sendable private func writeHandle(_ device: Device, _ rows: inout CopyWriter) throws {
    try rows.row(columns: 5)
    rows.text(HubName.default.rawValue)
    rows.text(utf8: device.handle)
    rows.uuid(high: device.id.high, low: device.id.low)
    rows.int2(Int16(device.platform.code))
    rows.int8(registeredAt)
  }

  @Sendable private func writeTags(_ device: Device, _ rows: inout CopyWriter) throws {
    for tag in device.tags {
      try rows.row(columns: 7)
      rows.text(HubName.default.rawValue)
      rows.text(tag)
      rows.uuid(high: device.id.high, low: device.id.low)
      rows.int2(Int16(device.platform.code))
      rows.text(utf8: device.handle)
      rows.int8(registeredAt)
      rows.int8(registeredAt)
    }
  }
}
