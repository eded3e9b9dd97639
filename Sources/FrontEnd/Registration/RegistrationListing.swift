import FanfareCore

/// What a caller asks of the list of registrations: `user`, `tag` and `handle`, all of which must fit, `limit`, and the
/// `cursor` of the page before. Operators see everybody's, users their own.
struct RegistrationListing {
  private static let maximumLimit = 1000

  private let audiences: [Audience]
  /// Behind which registration the page begins.
  private let after: RegistrationID?
  private let limit: Int
  /// What the audience leaves to be asked of a registration.
  private let fits: @Sendable (Registration) -> Bool

  /// Reads the query. Throws a refusal that names the parameter.
  init(_ query: Query, for caller: Caller) throws(Refusal) {
    try query.requireOnly(["user", "tag", "handle", "limit", "cursor"])
    let (user, tag, handle) = (try query.value(of: "user"), try query.value(of: "tag"), try query.value(of: "handle"))
    if let user, !UserName.isValid(user) { throw Refusal(.invalidParameter, "user must be \(UserName.rule)") }
    if let tag, !Tag.isAddressable(tag) { throw Refusal(.invalidParameter, "tag must be \(Tag.rule)") }
    limit = try Self.limit(try query.value(of: "limit"))
    after = try Self.cursor(try query.value(of: "cursor"))
    let isOperator = caller.roles.contains(.operator)
    if let user, !isOperator, !user.utf8.elementsEqual(caller.user.utf8) {
      throw Refusal(.forbidden, "user may only be the caller's own name")
    }
    let owner = isOperator ? user : caller.user
    if let handle {
      let platforms = Platform.allCases.filter { DeviceHandle.problem(with: handle, platform: $0) == nil }
      guard !platforms.isEmpty else { throw Refusal(.invalidParameter, "handle can be no platform's handle") }
      audiences = platforms.map { .device($0, handle: handle) }
    } else {
      // A user has few devices, a tag may have millions: the user's are looked through, and no cursor names somebody
      // else's.
      audiences = [owner.map(Audience.user) ?? tag.map(Audience.tag) ?? .everyone]
    }
    fits = { registration in
      (owner.map { $0.utf8.elementsEqual(registration.user.utf8) } ?? true)
        && (tag.map { tag in registration.tags.contains { $0.utf8.elementsEqual(tag.utf8) } } ?? true)
    }
  }

  /// The page as JSON: `registrations`, and `next`, the cursor of the next page, null on the last.
  func page(of directory: any RegistrationDirectory, hub: HubName) async throws -> [UInt8] {
    var output = Array(#"{"registrations":["#.utf8)
    var (last, isFirst): (RegistrationID?, Bool) = (nil, true)
    let rest = if let after { RegistrationSlice.whole.after(after) } else { Optional(RegistrationSlice.whole) }
    if let slice = rest {
      for audience in audiences {
        let page = try await directory.list(audience, hub: hub, of: slice, limit: limit)
        for registration in page.registrations where fits(registration) {
          if !isFirst { output.append(UInt8(ascii: ",")) }
          isFirst = false
          output.append(contentsOf: registration.json)
        }
        // Only an audience that is asked alone has more than one page.
        last = page.last
      }
    }
    output.append(literal: #"],"next":"#)
    if let last { output.appendJSON(last) } else { output.append(literal: "null") }
    output.append(UInt8(ascii: "}"))
    return output
  }

  private static func limit(_ text: String?) throws(Refusal) -> Int {
    guard let text else { return 100 }
    guard let limit = Int(text), (1...maximumLimit).contains(limit) else {
      throw Refusal(.invalidParameter, "limit must be 1 to \(maximumLimit)")
    }
    return limit
  }

  private static func cursor(_ text: String?) throws(Refusal) -> RegistrationID? {
    guard let text else { return nil }
    guard let id = RegistrationID(text) else {
      throw Refusal(.invalidParameter, "cursor must be what an earlier answer had as next")
    }
    return id
  }
}
