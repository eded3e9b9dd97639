/// The fields of an `application/x-www-form-urlencoded` body (WHATWG URL §5.1).
struct FormBody {
  private let fields: [String: String]

  /// Reads the fields; of one that occurs twice, the first counts.
  init(_ body: some Collection<UInt8>) {
    var fields: [String: String] = [:]
    for pair in body.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      let name = PercentEncoding.decode(parts[0], plusIsSpace: true)
      let value = parts.count > 1 ? PercentEncoding.decode(parts[1], plusIsSpace: true) : ""
      if fields[name] == nil { fields[name] = value }
    }
    self.fields = fields
  }

  /// The value of a field.
  subscript(name: String) -> String? { fields[name] }
}
