import FanfareCore
import Hummingbird

/// The query parameters of a request, decoded. A `+` stands for itself: handles and user names contain it, and apps do not escape it.
struct Query {
  private var parameters: [(name: String, value: String)] = []

  /// Takes a request's query apart. Throws when a percent escape is broken or does not make UTF-8.
  init(of request: Request) throws(Refusal) {
    guard let query = request.uri.query else { return }
    for part in query.utf8.split(separator: UInt8(ascii: "&")) {
      let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(pair[0]), let value = pair.count == 2 ? Self.decoded(pair[1]) : "" else {
        throw Refusal(.invalidParameter, "the query has a percent escape that is broken or not UTF-8")
      }
      parameters.append((name, value))
    }
  }

  /// The value of a parameter; nil when it is missing. Throws when it is there twice, for either could be meant.
  func value(of name: String) throws(Refusal) -> String? {
    let matches = parameters.filter { $0.name == name }
    guard matches.count <= 1 else { throw Refusal(.invalidParameter, "\(name) must be given once") }
    return matches.first?.value
  }

  /// The value of a parameter that must be there.
  func required(_ name: String) throws(Refusal) -> String {
    guard let value = try value(of: name) else { throw Refusal(.invalidParameter, "\(name) is missing") }
    return value
  }

  private static func decoded(_ text: Substring.UTF8View) -> String? {
    guard text.contains(UInt8(ascii: "%")) else { return String(validating: text, as: UTF8.self) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(Hexadecimal.value), let low = rest.popFirst().flatMap(Hexadecimal.value) else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
