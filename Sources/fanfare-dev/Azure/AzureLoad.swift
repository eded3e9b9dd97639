import FanfareCore

/// Registrations and sends through the Azure door, with the number of pushes that each send must cause.
///
/// Three devices belong to a user, one on each platform; the users are in ten groups. Most sends go to a user, some to
/// two, every fiftieth to a group; each goes to one platform.
struct AzureLoad: Sendable {
  /// An answer that is no success.
  struct Refusal: Error, CustomStringConvertible { let description: String }

  private static let groups = 10
  /// Requests at the same time.
  private static let width = 8

  let registrations: Int
  let sends: Int

  private var users: Int { (registrations + 2) / 3 }

  private static func group(ofUser user: Int) -> Int { user % groups }

  private static func handle(_ device: Int, _ platform: Platform) -> String {
    switch platform {
    case .apns:
      let digits = String(device, radix: 16)
      return "1a" + String(repeating: "0", count: 62 - digits.count) + digits
    case .fcm: return "azure-\(device)"
    default: return "https://db5p.notify.windows.com/?v=1&token=azure-\(device)"
    }
  }

  /// Registers the devices: each asks for an id, and then creates its registration under it.
  func register(through door: AzureClient) async throws {
    _ = try await Self.each(registrations) { device in
      let issued = try await door.send("POST", "/registrationids")
      guard issued.status == 201, let id = issued.id else { throw Refusal(issued) }
      let (dialect, user) = (AzureDialect.all[device % 3], device / 3)
      let tags = ["group-\(Self.group(ofUser: user))", "username:user-\(user)"]
      let answer = try await door.send(
        "PUT", "/registrations/\(id)", headers: [AzureDialect.entryType],
        body: dialect.entry(Self.handle(device, dialect.platform), tags: tags))
      guard answer.status == 200 else { throw Refusal(answer) }
      return id
    }
  }

  /// Sends to the devices. Returns the ids of the sends, in order.
  func send(through door: AzureClient) async throws -> [String] {
    try await Self.each(sends) { number in
      let dialect = AzureDialect.all[number % 3]
      let answer = try await door.send(
        "POST", "/messages", headers: dialect.headers(to: audience(ofSend: number).tags),
        body: dialect.payload("number \(number)"))
      guard answer.status == 201, let id = answer.id else { throw Refusal(answer) }
      return id
    }
  }

  /// The number of pushes of a send.
  func pushes(ofSend number: Int) -> Int {
    let covers = audience(ofSend: number).covers
    return stride(from: number % 3, to: registrations, by: 3).count { covers($0 / 3) }
  }

  /// The tags of a send, and whether it covers a user.
  private func audience(ofSend number: Int) -> (tags: [String], covers: (Int) -> Bool) {
    let user = number % users
    switch number % 50 {
    case 0:
      let group = number / 50 % Self.groups
      return (["group-\(group)"], { Self.group(ofUser: $0) == group })
    case 1..<10:
      let other = (user + 1) % users
      return (["username:user-\(user)", "username:user-\(other)"], { $0 == user || $0 == other })
    default: return (["username:user-\(user)"], { $0 == user })
    }
  }

  /// Does the work for the numbers below `count`, several at a time. Returns the results in order.
  private static func each(
    _ count: Int, _ body: @escaping @Sendable (Int) async throws -> String
  ) async throws -> [String] {
    try await withThrowingTaskGroup(of: (Int, String).self) { group in
      var values = [String](repeating: "", count: count)
      for number in 0..<count {
        if number >= width, let (done, value) = try await group.next() { values[done] = value }
        group.addTask { (number, try await body(number)) }
      }
      for try await (done, value) in group { values[done] = value }
      return values
    }
  }
}

extension AzureLoad.Refusal {
  init(_ answer: AzureClient.Answer) { self.init(description: "status \(answer.status): \(answer.body)") }
}
