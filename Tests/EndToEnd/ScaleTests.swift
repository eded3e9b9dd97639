import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// Many users and sends, several processes of each role, and workers that start and stop meanwhile.
///
/// Every send settles, and every device gets each of its pushes exactly once.
@Suite(.serialized) struct ScaleTests {
  static let users = 1000
  static let sends = 5000

  private struct Device {
    let user: Int
    let platform: String
    let handle: String

    var body: String {
      switch platform {
      case "apns": #"{"platform":"ios","instId":"\#(platform)-\#(user)","deviceToken":"\#(handle)"}"#
      case "fcm": #"{"platform":"android","instId":"\#(platform)-\#(user)","deviceToken":"\#(handle)"}"#
      default: #"{"platform":"windows","instId":"\#(platform)-\#(user)","channelUri":"\#(handle)"}"#
      }
    }
    /// The name of the device in the simulator's list.
    var name: String { "\(platform)/\(platform == "wns" ? "channel-\(user)" : handle)" }
  }

  /// One to three devices for each user; every hundredth user has none.
  private static let devices: [Device] = (0..<users).filter { $0 % 100 != 99 }.flatMap { user in
    var devices: [Device] = []
    let digits = String(user, radix: 16)
    if user % 3 != 1 {
      devices.append(
        Device(user: user, platform: "apns", handle: "1" + String(repeating: "0", count: 63 - digits.count) + digits))
    }
    if user % 3 != 0 { devices.append(Device(user: user, platform: "fcm", handle: "device-\(user)")) }
    if user % 10 == 0 {
      devices.append(
        Device(user: user, platform: "wns", handle: "https://cloud.notify.windows.com/?token=channel-\(user)"))
    }
    return devices
  }

  @Test(.timeLimit(.minutes(5))) func everySendSettlesAndEveryDeviceGetsItOnce() async throws {
    try await Deployment.with { deployment in
      let workers = [try deployment.startWorker(), try deployment.startWorker(), try deployment.startWorker()]
      let callers = [try await deployment.startFrontEnd(), try await deployment.startFrontEnd()]
      try await inParallel(Self.devices.count, width: 16) { index in
        let device = Self.devices[index]
        let answer = try await callers[index % 2].call(
          "POST", "/api/register", user: "user-\(device.user)", body: device.body)
        #expect(answer.status == 200, "\(answer.text)")
      }
      for worker in workers { _ = try await deployment.ready(worker) }

      // One worker starts and another stops while sends are in flight.
      let third = Self.sends / 300 * 100
      var accepted = try await post(0..<third, to: callers)
      let added = try deployment.startWorker()
      accepted += try await post(third..<2 * third, to: callers)
      _ = try await deployment.ready(added)
      async let status = workers[0].terminate()
      accepted += try await post(2 * third..<Self.sends, to: callers)
      #expect(try await status == 0)
      #expect(Set(accepted).count == Self.sends)

      let counts = Dictionary(Self.devices.map { ($0.user, 1) }, uniquingKeysWith: +)
      let sendsPerUser = Self.sends / Self.users
      let expected = Self.devices.count * sendsPerUser
      try await deployment.arrived(expected, within: .seconds(120))
      let ids = accepted
      try await inParallel(Self.sends, width: 32) { index in
        let report = try await deployment.settled(ids[index], as: "sender", at: callers[index % 2])
        let devices = counts[index % Self.users] ?? 0
        #expect(report["state"] as? String == (devices == 0 ? "noTarget" : "settled"))
        let platforms = report["counts"] as? [String: [String: Int]] ?? [:]
        #expect(platforms.values.reduce(0) { $0 + ($1["delivered"] ?? 0) } == devices, "\(report)")
      }
      let arrived = try await deployment.simulator.get("/counts").json
      // #require, not #expect: a thrown error prints the logs of all roles.
      try #require(arrived["duplicates"] as? Int == 0)
      try #require(arrived["accepted"] as? Int == expected)
      let received = try await receivedPerDevice(deployment)
      #expect(received.count == Self.devices.count)
      for device in Self.devices { #expect(received[device.name] == sendsPerUser) }
    }
  }

  /// Posts a send for each number to user `number % users`, in batches to the front ends in turn.
  ///
  /// Returns the ids in the order of the numbers.
  private func post(_ numbers: Range<Int>, to callers: [Caller]) async throws -> [String] {
    var ids: [String] = []
    for first in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 100) {
      let lines = (first..<first + 100).map {
        #"{"to":{"user":"user-\#($0 % Self.users)"},"message":{"body":"number \#($0)"}}"#
      }
      let answer = try await callers[first / 100 % callers.count].call(
        "POST", "/api/sends/batch", user: "sender", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
      #expect(answer.status == 200)
      for line in answer.text.split(separator: "\n") {
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        ids.append(try #require(object?["id"] as? String, "\(line)"))
      }
    }
    return ids
  }

  /// How many notifications each device received, by `platform/handle`, page by page.
  private func receivedPerDevice(_ deployment: Deployment) async throws -> [String: Int] {
    var received: [String: Int] = [:]
    var after = ""
    while true {
      let page = try await deployment.simulator.get("/devices?limit=500\(after)").json
      for device in page["devices"] as? [[String: Any]] ?? [] {
        let name = "\(device["platform"] ?? "")/\(device["handle"] ?? "")"
        received[name] = device["received"] as? Int
      }
      guard let next = page["next"] as? String else { return received }
      after = "&after=" + (next.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
    }
  }

  private func inParallel(_ count: Int, width: Int, _ body: @escaping @Sendable (Int) async throws -> Void) async throws
  {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<count {
        if index >= width { try await group.next() }
        group.addTask { try await body(index) }
      }
      try await group.waitForAll()
    }
  }
}
