import FanfareCore
import Foundation
import Registry

/// Writes a hub's registrations in ascending order of ids, one per line.
///
/// It reads them page by page. Each page is current at the moment of its query.
struct RegistrationExport {
  /// Registrations per query.
  private static let page = 5000

  let directory: any RegistrationDirectory
  let hub: HubName
  /// Only this user's; nil for all users.
  let user: String?
  /// Only those of these platforms.
  let platforms: PlatformSet

  /// Writes all registrations and returns their number. Throws when cancelled.
  ///
  /// After each page it reports the count so far and the finished share of the id space.
  func run(to write: ([UInt8]) throws -> Void, report: (_ count: Int, _ share: Double) -> Void) async throws -> Int {
    var (rest, count): (RegistrationSlice?, Int) = (.whole, 0)
    var output: [UInt8] = []
    while let slice = rest {
      let page = try await directory.list(user.map(Audience.user) ?? .everyone, hub: hub, of: slice, limit: Self.page)
      try Task.checkCancellation()
      output.removeAll(keepingCapacity: true)
      for registration in page.registrations where platforms.contains(registration.platform) {
        output.append(contentsOf: registration.json)
        output.append(UInt8(ascii: "\n"))
        count += 1
      }
      if !output.isEmpty { try write(output) }
      report(count, page.last.map(RegistrationSlice.whole.share(upTo:)) ?? 1)
      rest = page.last.flatMap(slice.after)
    }
    return count
  }
}
