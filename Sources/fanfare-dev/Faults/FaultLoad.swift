import FanfareCore
import FoundationEssentials
import Synchronization

/// Posts sends while a deployment is injured, and records which were accepted.
final class FaultLoad: Sendable {
  /// Sends in one request.
  private static let batch = 20
  /// The text before a send's number in its message.
  static let mark = "send number "

  /// An accepted send, with the times of its post and of the answer.
  struct Post: Sendable {
    let id: SendID
    let at: UnixTime
    let answeredAt: UnixTime
    /// Its time to live; nil for the default of a day.
    let timeToLive: Duration?
  }

  private struct State {
    var posts: [Int: Post] = [:]
    var number = 0
    var isEnding = false
  }

  private let deployment: FaultDeployment
  private let timeToLive: Duration?
  private let state = Mutex(State())

  /// Creates a load. Every tenth send has the time to live, unless it is nil.
  init(_ deployment: FaultDeployment, timeToLive: Duration? = nil) {
    self.deployment = deployment
    self.timeToLive = timeToLive
  }

  /// The ids of accepted sends.
  var accepted: Set<SendID> { Set(posts.values.map(\.id)) }

  /// The accepted sends, by number.
  var posts: [Int: Post] { state.withLock { $0.posts } }

  /// Registers the users: each with an iPhone and an Android, every tenth with a Windows machine.
  func register() async throws {
    let frontEnds = await deployment.frontEnds
    try await withThrowingTaskGroup(of: Void.self) { group in
      for user in 0..<FaultDeployment.users {
        if user >= 16 { try await group.next() }
        group.addTask {
          let client = frontEnds[user % frontEnds.count]
          var bodies = [
            #"{"platform":"ios","instId":"i-\#(user)","deviceToken":"\#(Self.iPhone(of: user))"}"#,
            #"{"platform":"android","instId":"a-\#(user)","deviceToken":"device-\#(user)"}"#,
          ]
          if Self.hasWindows(user) {
            bodies.append(
              #"{"platform":"windows","instId":"w-\#(user)","channelUri":"https://cloud.notify.windows.com/?token=channel-\#(user)"}"#
            )
          }
          for body in bodies { _ = try await client.request("POST", "/api/register", user: "user-\(user)", body: body) }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Whether the send's user has a device of the platform.
  static func hasDevice(ofSend number: Int, on platform: Platform) -> Bool {
    platform == .wns ? hasWindows(user(ofSend: number)) : [.apns, .fcm].contains(platform)
  }

  /// The number of devices of the send's user.
  static func devices(ofSend number: Int) -> Int { Platform.allCases.count { hasDevice(ofSend: number, on: $0) } }

  private static func hasWindows(_ user: Int) -> Bool { user % 10 == 0 }

  private static func user(ofSend number: Int) -> Int { number % FaultDeployment.users }

  /// The handle of the user's iPhone.
  static func iPhone(of user: Int) -> String {
    let digits = String(user, radix: 16)
    return "1" + String(repeating: "0", count: 63 - digits.count) + digits
  }

  /// Posts about 100 sends a second until `end`.
  ///
  /// It repeats a failed request at another front end as a new one: a send counts only if it was accepted.
  func run() async throws {
    while !state.withLock({ $0.isEnding }) {
      await post()
      try await Task.sleep(for: .milliseconds(200))
    }
  }

  /// Ends the load after the current request.
  func end() { state.withLock { $0.isEnding = true } }

  private func post() async {
    let frontEnds = await deployment.frontEnds
    let first = state.withLock { state in
      defer { state.number += Self.batch }
      return state.number
    }
    let numbers = Array(first..<first + Self.batch)
    let lines = numbers.map { number in
      let seconds = timeToLive(of: number).map { #","ttl":\#($0.components.seconds)"# } ?? ""
      return
        #"{"to":{"user":"user-\#(Self.user(ofSend: number))"},"message":{"body":"\#(Self.mark)\#(number)"}\#(seconds)}"#
    }
    let at = SystemWallClock().now()
    let client = frontEnds[first / Self.batch % frontEnds.count]
    do {
      let answer = try await client.request(
        "POST", "/api/sends/batch", user: "sender", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
      let answeredAt = SystemWallClock().now()
      // One line for each send, in order.
      for (number, line) in zip(numbers, String(decoding: answer, as: UTF8.self).split(separator: "\n")) {
        guard let id = Self.id(line) else { continue }
        let post = Post(id: id, at: at, answeredAt: answeredAt, timeToLive: timeToLive(of: number))
        state.withLock { $0.posts[number] = post }
      }
    } catch {
      // The front end is injured, or it reports that Kafka is. A send that it did not accept is not lost.
      return
    }
  }

  /// The time to live of a send: the short one for every tenth send of each user.
  private func timeToLive(of number: Int) -> Duration? {
    (number / FaultDeployment.users + number) % 10 == 0 ? timeToLive : nil
  }

  private static func id(_ line: Substring) -> SendID? {
    struct Answer: Decodable { let id: String? }
    // A refused line has no id.
    guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(line.utf8)) else { return nil }
    return answer.id.flatMap { SendID($0) }
  }
}
