import FanfareCore
import Hummingbird

/// The query parameters of a request, decoded. A `+` stands for itself: handles and user names contain it, and apps do
/// not escape it.
struct Query {
  private var parameters: [(name: String, value: String)] = []

  /// Takes a request's query apart. Throws when a percent escape is broken or does not make UTF-8.
  init(of request: Request) throws(Refusal) {
    guard let query = request.uri.query else { return }
    for part in query.utf8.split(separator: UInt8(ascii: "&")) {
      let end = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
      guard let name = Self.decoded(part[..<end]), let value = Self.decoded(part[end...].dropFirst()) else {
        throw Refusal(.invalidParameter, "the query has a percent escape that is broken or not UTF-8")
      }
      parameters.append((name, value))
    }
  }

  /// The value of a parameter; nil when it is missing. Throws when it is there twice, for either could be meant.
  func value(of name: String) throws(Refusal) -> String? {
    guard let index = parameters.firstIndex(where: { $0.name == name }) else { return nil }
    guard !parameters[(index + 1)...].contains(where: { $0.name == name }) else {
      throw Refusal(.invalidParameter, "\(name) must be given once")
    }
    return parameters[index].value
  }

  /// The value of a parameter that must be there.
  func required(_ name: String) throws(Refusal) -> String {
    guard let value = try value(of: name) else { throw Refusal(.invalidParameter, "\(name) is missing") }
    return value
  }

  /// Throws when there is a parameter besides these.
  func requireOnly(_ names: [String]) throws(Refusal) {
    guard let unknown = parameters.first(where: { !names.contains($0.name) })?.name else { return }
    // Where a `=` was forgotten this is a value: it may be a handle, or have line breaks for the log.
    let isName =
      (1...32).contains(unknown.utf8.count)
      && unknown.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
    throw Refusal(
      .invalidParameter,
      "\(isName ? unknown : "what is given") is not a known parameter; known are \(names.joined(separator: ", "))")
  }

  /// The text without percent escapes; nil when one is broken, or they do not make UTF-8.
  static func decoded(_ text: Substring.UTF8View) -> String? {
    guard text.contains(UInt8(ascii: "%")) else { return String(text) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(Hexadecimal.value), let low = rest.popFirst().flatMap(Hexadecimal.value)
      else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
