import FanfareCore
import Foundation

/// A send as the HTTP API reports it.
struct SendAnswer: APIObject {
  struct Broadcast: Decodable {
    let pages: Int
    let finishedPages: Int
    let course: String
    let cause: String
    let remainingSeconds: Int?
  }

  struct Device: Decodable {
    let registration: String?
    let platform: String
    let outcome: String
    let reason: String?
    let status: Int?
    let attempts: Int?
  }

  /// Devices that did not get the push, for one reason.
  struct Failure: Decodable {
    let platform: String
    let outcome: String
    let reason: String
    let devices: Int
  }

  /// A step on the way of the send.
  struct Event: Decodable {
    let event: String
    let at: String
    let platform: String?
    let registration: String?
  }

  let id: String
  let sender: String?
  let to: String?
  let state: String
  let acceptedAt: String?
  let sendAt: String?
  let settledAt: String?
  let course: String?
  /// By platform and outcome.
  let counts: [String: [String: Int]]?
  let broadcast: Broadcast?
  let devices: [Device]?
  let failures: [Failure]?
  let timeline: [Event]?

  /// Whether nothing more will happen.
  var hasEnded: Bool { state != "accepted" && state != "scheduled" }

  /// Whether the send has reached its devices, as far as there were any.
  var isSuccess: Bool { state == "settled" || state == "noTarget" }

  /// The devices with an outcome.
  var devicesDone: Int { (counts ?? [:]).values.flatMap(\.values).clampedSum() }

  /// The devices with this outcome on all platforms.
  func count(_ outcome: String) -> Int { (counts ?? [:]).values.compactMap { $0[outcome] }.clampedSum() }

  /// The outcomes in words: `12 delivered, 1 rejected`.
  var outcomes: String {
    let words = DeviceResult.Outcome.allCases.map(\.rawValue).compactMap { name in
      count(name) > 0 ? "\(count(name)) \(name)" : nil
    }
    return words.joined(separator: ", ")
  }

  /// The lines of `fanfare sends show`.
  func fields(at now: UnixTime) -> [(String, String?)] {
    let isControlled = broadcast.map { $0.cause != "caller" && $0.course != "running" } ?? false
    return [
      ("id", id), ("state", state), ("to", to), ("sender", sender), ("accepted", APITime.text(acceptedAt, at: now)),
      ("send at", APITime.text(sendAt, at: now)), ("settled", APITime.text(settledAt, at: now)),
      ("course", broadcast?.course ?? course), ("outcomes", outcomes.isEmpty ? nil : outcomes),
      ("pages", broadcast.map { "\($0.finishedPages) of \($0.pages)" }),
      ("remaining", broadcast?.remainingSeconds.map { "\($0) s" }), ("because", isControlled ? broadcast?.cause : nil),
    ]
  }

  /// A duration between two stages: `35 ms`, `1.2 s`.
  private static func text(_ duration: Duration) -> String {
    let milliseconds = duration.milliseconds
    guard milliseconds >= 1000 else { return "\(milliseconds) ms" }
    return "\(milliseconds / 1000).\(milliseconds % 1000 / 100) s"
  }

  /// The way of the send with the time since the stage before, and its devices, as tables.
  var tables: [TextTable] {
    var tables: [TextTable] = []
    if let timeline, !timeline.isEmpty {
      var last: UnixTime?
      let steps = timeline.map { event in
        let time = UnixTime(event.at)
        defer { last = time ?? last }
        return (event: event, after: last.flatMap { last in time.map { Self.text($0 - last) } })
      }
      tables.append(
        TextTable(
          [
            Column("at", \.event.at), Column("after", isNumber: true, \.after), Column("event", \.event.event),
            Column("platform", \.event.platform), Column("device", \.event.registration),
          ], steps))
    }
    if let failures, !failures.isEmpty, devices == nil {
      tables.append(
        TextTable(
          [
            Column("platform", \.platform), Column("outcome", \.outcome), Column("reason", \.reason),
            Column("devices", isNumber: true) { "\($0.devices)" },
          ], failures))
    }
    if let devices, !devices.isEmpty {
      tables.append(
        TextTable(
          [
            Column("device", \.registration), Column("platform", \.platform), Column("outcome", \.outcome),
            Column("reason", \.reason), Column("status", isNumber: true) { $0.status.map(String.init) },
            Column("attempts", isNumber: true) { $0.attempts.map(String.init) },
          ], devices))
    }
    return tables
  }

  static let path = "/api/sends"
  static let usualCount = 20
  static var columns: [Column<Self>] {
    [
      Column("id", \.id), Column("accepted") { APITime.distance($0.acceptedAt) }, Column("state", \.state),
      Column("to", \.to), Column("sender", \.sender), Column("outcomes", \.outcomes),
    ]
  }
}

/// The answer to an accepted send.
struct AcceptedAnswer: Decodable {
  let id: String
  let state: String
}

extension APIClient {
  /// The state of a send, as the API reports it; nil while the history does not know it.
  func send(_ id: String) async throws -> (answer: SendAnswer, json: Data)? {
    do {
      let json = try await call(.GET, "/api/sends/\(id)")
      return (try JSONDecoder().decode(SendAnswer.self, from: json), json)
    } catch let refusal as APIRefusal where refusal.code == "notFound" {
      return nil
    }
  }
}
