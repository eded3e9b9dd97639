import FanfareCore
import FoundationEssentials
package import Logging

/// The groups of users, from a file in the format of Apache: lines of `group: user user`, blank lines, and comments
/// that begin with `#`. The file is read again when it changes; see `WatchedFile`.
package final class GroupDirectory: Sendable {
  private let file: WatchedFile<GroupFile>

  /// Reads the file. Throws `.groupFile` if it cannot be read, or with the number of the first invalid line.
  package init(
    path: String, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }, logger: Logger
  ) throws(FrontEndError) {
    file = try WatchedFile(path: path, name: "Group file", interval: .seconds(1), now: now, logger: logger) {
      path, _ throws(FrontEndError) in try GroupFile(path: path)
    }
  }

  /// Returns the groups of a user, and the generation of the file that says so.
  func groups(of user: String) async -> (groups: Set<ExactName>, generation: Int) {
    let (content, generation) = await file.latest()
    return (content.groups[ExactName(user)] ?? [], generation)
  }

  /// See `WatchedFile.isCurrent`.
  func isCurrent(_ generation: Int) -> Bool { file.isCurrent(generation) }
}

/// A parsed group file.
struct GroupFile: Sendable {
  /// The most bytes of a file.
  static let maximumSize = 16 * 1024 * 1024

  /// By user.
  let groups: [ExactName: Set<ExactName>]

  /// Parses a text. Throws with the number of the first invalid line, and nothing of its content.
  init(_ text: String) throws(FrontEndError) {
    var groups: [ExactName: Set<ExactName>] = [:]
    var number = 0
    for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
      number += 1
      guard let first = line.first(where: { !$0.isWhitespace }), first != "#" else { continue }
      func fail(_ problem: String) -> FrontEndError {
        FrontEndError(.groupFile, "line \(number) of the group file \(problem)")
      }
      guard let colon = line.firstIndex(of: ":") else { throw fail("has no ':' between group and users") }
      let group = String(line[..<colon].drop(while: \.isWhitespace))
      guard UserName.isValid(group) else { throw fail("has an invalid group name: it must be \(UserName.rule)") }
      for name in line[line.index(after: colon)...].split(whereSeparator: \.isWhitespace) {
        let user = String(name)
        guard UserName.isValid(user) else { throw fail("has an invalid user name: it must be \(UserName.rule)") }
        groups[ExactName(user), default: []].insert(ExactName(group))
      }
    }
    self.groups = groups
  }

  /// Reads and parses a file.
  init(path: String) throws(FrontEndError) {
    let data: Data
    do { data = try Data(contentsOf: URL(filePath: path)) } catch {
      throw FrontEndError(.groupFile, "the group file \(path) cannot be read")
    }
    guard data.count <= Self.maximumSize else {
      throw FrontEndError(
        .groupFile, "the group file \(path) has \(data.count) bytes; at most \(Self.maximumSize) are allowed")
    }
    guard let text = String(validating: data, as: UTF8.self) else {
      throw FrontEndError(.groupFile, "the group file \(path) is not UTF-8")
    }
    try self.init(text)
  }
}
