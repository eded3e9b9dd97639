import FanfareCore

/// A request for a list of registrations.
/// Its parameters are `user`, `tag` and `handle`, which must all match, `limit` and `cursor`.
///
/// Operators see all registrations, users their own.
struct RegistrationListing {
  private static let maximumLimit = 1000
  private static let defaultLimit = 100

  private let audiences: [Audience]
  /// The page begins behind this registration.
  private let after: RegistrationID?
  private let limit: Int
  /// The conditions that the audiences do not cover.
  private let matches: @Sendable (Registration) -> Bool

  /// Reads the query. Throws a refusal that names the parameter.
  init(_ query: Query, for caller: Caller) throws(Refusal) {
    try query.requireOnly(["user", "tag", "handle", "limit", "cursor"])
    let (user, tag, handle) = (try query.userName("user"), try query.value(of: "tag"), try query.value(of: "handle"))
    if let tag, !Tag.isAddressable(tag) { throw Refusal(.invalidParameter, "tag must be \(Tag.rule)") }
    limit = try query.limit(upTo: Self.maximumLimit) ?? Self.defaultLimit
    after = try query.cursor { RegistrationID($0) }
    if let user, !caller.isOperator, !user.utf8.elementsEqual(caller.user.utf8) {
      throw Refusal(.forbidden, "user must be the caller's own name; only operators may name others")
    }
    let owner = caller.isOperator ? user : caller.user
    if let handle {
      let platforms = Platform.allCases.filter { DeviceHandle.problem(with: handle, platform: $0) == nil }
      guard !platforms.isEmpty else { throw Refusal(.invalidParameter, "handle is not valid on any platform") }
      audiences = platforms.map { .device($0, handle: handle) }
    } else {
      // A user has few devices, a tag may have millions: search the user's. So no cursor names another user's device.
      audiences = [owner.map(Audience.user) ?? tag.map(Audience.tag) ?? .everyone]
    }
    matches = { registration in
      (owner.map { $0.utf8.elementsEqual(registration.user.utf8) } ?? true)
        && (tag.map { tag in registration.tags.contains { $0.utf8.elementsEqual(tag.utf8) } } ?? true)
    }
  }

  /// Returns the page as JSON with `registrations` and `next`, the cursor of the next page or null.
  func page(of directory: any RegistrationDirectory, hub: HubName) async throws -> [UInt8] {
    var (found, last): ([Registration], RegistrationID?) = ([], nil)
    if let slice = after.map({ RegistrationSlice.whole.after($0) }) ?? RegistrationSlice.whole {
      for audience in audiences {
        let page = try await directory.list(audience, hub: hub, of: slice, limit: limit)
        found += page.registrations.filter(matches)
        // Only a single audience can have more than one page.
        last = page.last
      }
    }
    return JSONWriter.object {
      $0.member("registrations", found)
      $0.member("next", last)
    }
  }
}
