import FanfareCore
import HTTPServer
import HTTPTypes

/// The routes for operators' questions about devices: how many have a tag, and which ones a user has lost and why.
struct InquiryRoutes: Sendable {
  /// The most registrations of a tag that are counted: a few hundred milliseconds of a database's time.
  static let mostCounted = 100_000
  private static let maximumLimit = 200

  let inquiry: any RegistrationInquiry
  let clock: any WallClock

  var routes: [Route] {
    [
      Route(.get, "api/tags/{tag}", [.readAll]) { try await count($0, by: $1) },
      Route(.get, "api/tombstones", [.readAll]) { try await tombstones($0, by: $1) },
    ]
  }

  private func count(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    guard let tag = exchange.parameters["tag"].flatMap({ Query.decoded($0.utf8) }), Tag.isAddressable(tag) else {
      throw Refusal(.invalidParameter, "the tag must be \(Tag.rule), or username: and a user name")
    }
    let count = try await inquiry.count(tag: tag, hub: caller.hub.name, limit: Self.mostCounted)
    let document = JSONWriter.object {
      $0.member("tag", tag)
      $0.member("registrations", count)
      $0.member("isLowerBound", count == Self.mostCounted)
    }
    return .json(document, isPrivate: true)
  }

  private func tombstones(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    let query = try Query(of: exchange)
    try query.requireOnly(["user", "limit", "cursor"])
    guard let user = try query.userName("user") else { throw Refusal(.invalidParameter, "user is missing") }
    let limit = try query.limit(upTo: Self.maximumLimit) ?? 50
    let last = try query.cursor { RemovedRegistration.Position(cursor: $0) }
    // One more shows whether there is another page.
    let found = try await inquiry.removed(
      from: user, hub: caller.hub.name, before: last, limit: limit + 1, at: clock.now())
    let page = found.prefix(limit)
    let document = JSONWriter.object(capacity: 64 + page.count * 256) {
      $0.array("tombstones", page) { json, removed in json.object { removed.write(to: &$0) } }
      $0.member("next", found.count > limit ? page.last?.position.cursor : nil)
    }
    return .json(document, isPrivate: true)
  }
}

extension RemovedRegistration {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("registration", registration)
    json.member("at", at)
    json.member("cause", cause)
    json.member("detail", detail)
    json.member("restorableUntil", quarantine?.endsAt)
    json.member("platform", quarantine?.platform)
    // Enough to tell a user's devices apart, and of no use to anybody else.
    json.member("handle", quarantine.flatMap { $0.handle.count >= 24 ? "…" + $0.handle.suffix(4) : nil })
  }
}

extension RemovedRegistration.Position {
  /// The position as a cursor: milliseconds and id, with `_` between them.
  fileprivate var cursor: String { "\(at.milliseconds)_\(registration)" }

  fileprivate init?(cursor: String) {
    let parts = cursor.split(separator: "_", omittingEmptySubsequences: false)
    guard parts.count == 2, let milliseconds = Int64(parts[0]), let id = RegistrationID(String(parts[1])) else {
      return nil
    }
    self.init(at: UnixTime(milliseconds: milliseconds), registration: id)
  }
}
