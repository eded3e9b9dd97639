import FanfareCore
import FoundationEssentials
import FrontEnd
import HTTPServer

/// A request for a page of registrations: all of them, those with a handle, or those with a tag.
struct RegistrationListRequest: Sendable {
  /// The most registrations of a page, as in Azure.
  static let maximumTop = 100
  /// The most registrations that are left out; each costs as much as one that is listed.
  static let maximumSkip = 10_000
  private static let skippedAtOnce = 1000

  private let audiences: [Audience]
  private let after: RegistrationID?
  private let top: Int
  /// The registrations to leave out at the beginning.
  private let skip: Int

  /// All registrations, or those of the query's `$filter`.
  init(of request: AzureRequest) throws(Refusal) {
    guard let filter = request.value("$filter") else {
      try self.init(request, [.everyone])
      return
    }
    let (name, handle) = try Self.parse(filter: filter)
    let service = PushServiceName.all.first { $0.kind.handleElement.lowercased() == name }
    guard let service else {
      throw Refusal(
        .invalidParameter,
        "$filter must compare \(PushServiceName.all.map(\.kind.handleElement).alternatives) with eq")
    }
    // Clients name it ChannelUri on all platforms, and some encode its value twice.
    let platforms = service.platform == .wns ? Platform.allCases : [service.platform]
    let decoded = Exchange.decoded(handle[...]) ?? handle
    let audiences = (decoded == handle ? [handle] : [handle, decoded]).flatMap { handle in
      platforms.filter { DeviceHandle.problem(with: handle, platform: $0) == nil }.map {
        Audience.device($0, handle: DeviceHandle.normalized(handle, platform: $0))
      }
    }
    try self.init(request, audiences)
  }

  /// The registrations with a tag in Azure's form.
  init(of request: AzureRequest, tag: String) throws(Refusal) {
    let tag = AzureTags.translated(tag)
    guard Tag.isAddressable(tag) else { throw Refusal(.invalidParameter, "the tag must be \(Tag.rule)") }
    try self.init(request, [Tag.user(of: tag).map(Audience.user) ?? .tag(tag)])
  }

  private init(_ request: AzureRequest, _ audiences: [Audience]) throws(Refusal) {
    self.audiences = audiences
    if let text = request.value("$top"), !text.isEmpty {
      guard let number = Int(text), number > 0 else { throw Refusal(.invalidParameter, "$top must be a number from 1") }
      top = min(number, Self.maximumTop)
    } else {
      top = Self.maximumTop
    }
    if let token = request.value("continuationtoken"), !token.isEmpty {
      guard let last = Self.position(of: token) else {
        throw Refusal(.invalidParameter, "continuationtoken must be the token of an earlier answer")
      }
      after = last
    } else {
      after = nil
    }
    if let text = request.value("$skip"), !text.isEmpty {
      guard let number = Int(text), (0...Self.maximumSkip).contains(number) else {
        throw Refusal(
          .invalidParameter,
          "$skip must be a number from 0 to \(Self.maximumSkip); the continuation token of an answer leads further")
      }
      // A client repeats its whole query with the token.
      skip = after == nil ? number : 0
    } else {
      skip = 0
    }
  }

  /// Reads `ChannelUri eq 'handle'`; a doubled quote stands for one. Returns the name in lower case.
  static func parse(filter: String) throws(Refusal) -> (name: String, handle: String) {
    let parts = filter.trimmingSpace.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: true)
    guard parts.count == 3, parts[1].lowercased() == "eq" else {
      throw Refusal(.invalidParameter, "$filter must be of the form ChannelUri eq 'handle'")
    }
    let value = parts[2].trimmingSpace
    guard value.count >= 2, value.hasPrefix("'"), value.hasSuffix("'") else {
      throw Refusal(.invalidParameter, "$filter must have a handle in single quotes")
    }
    return (parts[0].lowercased(), String(value.dropFirst().dropLast()).replacing("''", with: "'"))
  }

  /// Reads the page. Returns the token of the next one; nil if there is none.
  ///
  /// Templates and tiles come first in the page, so that a client that removes all listed registrations one by one
  /// removes the parts of an installation before the installation, whose removal would remove them too.
  func page(of directory: any RegistrationDirectory, hub: HubName) async throws -> (rows: [Registration], next: String?)
  {
    let (rows, next) = try await rows(of: directory, hub: hub)
    return (rows.filter(\.isPart) + rows.filter { !$0.isPart }, next)
  }

  private func rows(
    of directory: any RegistrationDirectory, hub: HubName
  ) async throws -> (rows: [Registration], next: String?) {
    guard var slice = after.map({ RegistrationSlice.whole.after($0) }) ?? RegistrationSlice.whole else {
      return ([], nil)
    }
    // Handles have few registrations, and are skipped below.
    var left = audiences.count == 1 ? skip : 0
    while left > 0, let audience = audiences.first {
      let page = try await directory.list(audience, hub: hub, of: slice, limit: min(left, Self.skippedAtOnce))
      left -= page.registrations.count
      guard let next = page.last.flatMap({ RegistrationSlice.whole.after($0) }) else { return ([], nil) }
      slice = next
    }
    var rows: [Registration] = []
    var examined: RegistrationID?
    for audience in audiences {
      // One more shows whether there is another page.
      let page = try await directory.list(audience, hub: hub, of: slice, limit: top + 1)
      rows += page.registrations
      // Only a single audience has more candidates than a page.
      examined = page.last
    }
    rows.sort { $0.id < $1.id }
    if audiences.count > 1 { rows.removeFirst(min(skip, rows.count)) }
    if rows.count > top { return (Array(rows.prefix(top)), Self.token(of: rows[top - 1].id)) }
    return (rows, examined.map(Self.token))
  }

  /// Base64 of the id's text, which has no character that a URL would escape.
  static func token(of id: RegistrationID) -> String { Data("\(id)".utf8).base64EncodedString() }

  private static func position(of token: String) -> RegistrationID? {
    Data(base64Encoded: token).flatMap { RegistrationID(String(decoding: $0, as: UTF8.self)) }
  }
}
