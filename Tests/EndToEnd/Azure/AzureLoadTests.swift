import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// Many registrations and sends through the Azure door end exact in ledger, audit and devices.
///
/// The size that the documentation names takes some minutes in a debug build:
/// `FANFARE_TEST_AZURE=10000x1000 deploy/test --filter AzureLoadTests`
@Suite(.timeLimit(.minutes(30))) struct AzureLoadTests {
  /// Registrations and sends.
  private static let size: (registrations: Int, sends: Int) = {
    let words = ProcessInfo.processInfo.environment["FANFARE_TEST_AZURE"]?.split(separator: "x").compactMap { Int($0) }
    guard let words, words.count == 2 else { return (600, 150) }
    return (words[0], words[1])
  }()

  /// The devices of the test: three to a user, one on each platform; ten groups of users.
  private struct Crowd {
    let registrations: Int
    private static let groups = 10

    var users: Int { (registrations + 2) / 3 }

    func dialect(_ device: Int) -> TutorialBackend.Dialect { TutorialBackend.Dialect.all[device % 3] }
    func user(_ device: Int) -> Int { device / 3 }
    static func group(ofUser user: Int) -> Int { user % groups }

    func handle(_ device: Int) -> String { AzureSettings.handle("load\(device)", dialect(device).platform) }

    /// The tags of a send, and whether a user is meant.
    func audience(ofSend number: Int) -> (tags: [String], covers: (Int) -> Bool) {
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

    /// The devices to which a send must be pushed.
    func devices(ofSend number: Int) -> Int {
      let covers = audience(ofSend: number).covers
      return (0..<registrations).count { $0 % 3 == number % 3 && covers(user($0)) }
    }
  }

  @Test func registrationsAndSendsEndExact() async throws {
    try await AzureSettings.withDeployment { deployment, api in
      let (crowd, sends) = (Crowd(registrations: Self.size.registrations), Self.size.sends)
      let backend = TutorialBackend(door: AzureDoor(api))
      try await Self.each(0..<crowd.registrations) { device in
        let issued = try await backend.door.send("POST", "/registrationids")
        let answer = try await backend.register(
          try issued.id(), crowd.handle(device), crowd.dialect(device), user: "user-\(crowd.user(device))",
          tags: ["group-\(Crowd.group(ofUser: crowd.user(device)))"])
        #expect(issued.status == 201 && answer.status == 200, "\(answer.body)")
      }
      let ids = try await Self.each(0..<sends) { number in
        let answer = try await backend.notify(
          "number \(number)", TutorialBackend.Dialect.all[number % 3], tags: crowd.audience(ofSend: number).tags)
        #expect(answer.status == 201, "\(answer.body)")
        return try answer.id()
      }
      #expect(Set(ids.values).count == sends)
      var total = 0
      for number in 0..<sends {
        let report = try await deployment.settled(try #require(ids[number]), as: "operator", at: api)
        let counts = (report["counts"] as? [String: [String: Int]] ?? [:]).mapValues { $0["delivered"] ?? 0 }
        let expected = crowd.devices(ofSend: number)
        #expect(counts.values.reduce(0, +) == expected, "send \(number): \(report)")
        total += expected
      }
      let arrived = try await deployment.simulator.get("/counts").json
      #expect(arrived["accepted"] as? Int == total && arrived["duplicates"] as? Int == 0, "\(arrived)")
      let (status, output, errors) = try await deployment.run(["audit", "--json"])
      let audit = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] ?? [:]
      #expect(status == 0, "\(errors)")
      #expect(audit["accepted"] as? Int == sends && audit["settled"] as? Int == sends, "\(audit)")
      #expect(audit["lost"] as? Int == 0 && audit["inFlight"] as? Int == 0, "\(audit)")
      // The registry has exactly these devices.
      let (exported, lines, words) = try await deployment.run(["registrations", "export"])
      #expect(exported == 0, "\(words)")
      #expect(lines.split(separator: "\n").count == crowd.registrations)
    }
  }

  /// Calls the function for each number, a few at a time. Returns the results by number.
  @discardableResult private static func each<Value: Sendable>(
    _ numbers: Range<Int>, _ body: @escaping @Sendable (Int) async throws -> Value
  ) async throws -> [Int: Value] {
    try await withThrowingTaskGroup(of: (Int, Value).self) { group in
      var values: [Int: Value] = [:]
      for number in numbers {
        if number >= numbers.lowerBound + 8, let (done, value) = try await group.next() { values[done] = value }
        group.addTask { (number, try await body(number)) }
      }
      for try await (done, value) in group { values[done] = value }
      return values
    }
  }
}
