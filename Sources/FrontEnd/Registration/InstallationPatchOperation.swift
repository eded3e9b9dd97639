import FanfareCore

/// One operation of a patch, checked as far as possible without the installation.
struct InstallationPatchOperation: Hashable {
  /// The change or test to perform.
  enum Change: Hashable {
    case setPlatform(Platform)
    case setHandle(String)
    case setTags([String])
    /// Inserts before the tag at the index; nil: at the end.
    case insertTag(String, at: Int?)
    case replaceTag(String, at: Int)
    case removeTag(at: Int)
    case removeTagNamed(String)
    case testPlatform(Platform)
    case testHandle(String)
    case testTags([String])
    case testTag(String, at: Int)
  }

  let change: Change
  /// The path for error messages, without the name of a tag.
  let path: String

  /// Whether it changes the platform or the handle.
  var changesAddress: Bool {
    switch change {
    case .setPlatform, .setHandle: true
    default: false
    }
  }

  /// Reads an operation. Unknown members are ignored, as RFC 6902 requires.
  init(from reader: inout JSONReader) throws(JSONError) {
    var (kind, pointer, value): (Kind?, String?, Value?)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "op":
        guard kind == nil else { throw reader.duplicateMember() }
        guard let known = Kind(rawValue: try reader.readString()) else {
          throw reader.error("must be add, replace, remove or test")
        }
        kind = known
      case "path":
        guard pointer == nil else { throw reader.duplicateMember() }
        pointer = try reader.readString()
      case "value":
        guard value == nil else { throw reader.duplicateMember() }
        value = try Value(from: &reader)
      default: try reader.skipValue()
      }
    }
    guard let kind else { throw reader.error("must have an op") }
    guard let pointer, let place = Place(pointer) else { throw reader.error("must have a path: \(Place.expectation)") }
    path = if case .name = place { "/tags/TAG" } else { pointer }
    do throws(Invalid) {
      change = try Self.change(kind, place, value)
    } catch {
      throw reader.error("\(path) \(error.problem)")
    }
  }

  private enum Kind: String {
    case add, replace, remove, test
  }

  private struct Invalid: Error {
    let problem: String
  }

  private enum Value {
    case text(String)
    case texts([String])
    case other

    init(from reader: inout JSONReader) throws(JSONError) {
      switch try reader.nextKind() {
      case .string: self = .text(try reader.readString())
      case .array: self = .texts(try reader.readTags())
      default:
        try reader.skipValue()
        self = .other
      }
    }
  }

  /// The target of a path (RFC 6901).
  private enum Place {
    case platform, handle, tags, end
    case index(Int)
    case name(String)

    static let expectation = "/platform, /handle, /deviceToken, /channelUri, /tags, /tags/-, /tags/INDEX or /tags/TAG"

    init?(_ pointer: String) {
      let prefix = "/tags/"
      switch pointer {
      case "/platform": self = .platform
      case "/handle", "/deviceToken", "/channelUri": self = .handle
      case "/tags": self = .tags
      case "/tags/-": self = .end
      case _ where pointer.hasPrefix(prefix):
        let token = String(pointer.dropFirst(prefix.count))
        if let index = Int(token), "\(index)" == token, index >= 0 {
          self = .index(index)
        } else {
          // Tags contain no characters that need escapes, but user names may.
          let tag = token.replacing("~1", with: "/").replacing("~0", with: "~")
          guard Tag.isAddressable(tag) else { return nil }
          self = .name(tag)
        }
      default: return nil
      }
    }
  }

  private static func change(_ kind: Kind, _ place: Place, _ value: Value?) throws(Invalid) -> Change {
    switch (kind, place) {
    case (.remove, .tags): return .setTags([])
    case (.remove, .index(let index)): return .removeTag(at: index)
    case (.remove, .name(let tag)): return .removeTagNamed(tag)
    case (.remove, .platform), (.remove, .handle): throw Invalid(problem: "cannot be removed")
    case (_, .name): throw Invalid(problem: "can only be removed")
    case (let kind, .end) where kind != .add: throw Invalid(problem: "can only be added to")
    case (.test, .platform): return .testPlatform(try platform(value))
    case (_, .platform): return .setPlatform(try platform(value))
    case (.test, .handle): return .testHandle(try text(value))
    case (_, .handle): return .setHandle(try text(value))
    case (_, .tags):
      guard case .texts(let tags)? = value else { throw Invalid(problem: "must have a value that is an array of tags") }
      return kind == .test ? .testTags(tags) : .setTags(tags)
    case (_, .end): return .insertTag(try tag(value), at: nil)
    case (.add, .index(let index)): return .insertTag(try tag(value), at: index)
    case (.test, .index(let index)): return .testTag(try tag(value), at: index)
    case (_, .index(let index)): return .replaceTag(try tag(value), at: index)
    }
  }

  private static func text(_ value: Value?) throws(Invalid) -> String {
    guard case .text(let text)? = value else { throw Invalid(problem: "must have a value that is a string") }
    return text
  }

  private static func tag(_ value: Value?) throws(Invalid) -> String {
    let tag = try text(value)
    guard Tag.isAddressable(tag) else { throw Invalid(problem: "must have a value of \(Tag.rule)") }
    return tag
  }

  private static func platform(_ value: Value?) throws(Invalid) -> Platform {
    guard let platform = Platform(systemOrName: try text(value)) else { throw Invalid(problem: Platform.expectation) }
    return platform
  }
}
