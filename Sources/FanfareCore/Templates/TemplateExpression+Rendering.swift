extension TemplateExpression {
  /// Appends the value, escaped for the place where it stands. In JSON the value includes its quotes.
  ///
  /// Throws `.payloadTooLarge` before the first part that makes the output longer than `limit`.
  func append(
    _ values: TemplateValues, as syntax: Template.Syntax, to output: inout [UInt8], limit: Int
  ) throws(PushOutcome) {
    guard syntax == .json else { return try appendParts(values, as: syntax, to: &output, limit: limit) }
    if isNumber, case .property(let property) = parts[0] {
      let value = property.value(values)
      if value.isJSONNumber { return try output.append(value, as: .text, limit: limit) }
    }
    output.append(UInt8(ascii: "\""))
    try appendParts(values, as: syntax, to: &output, limit: limit)
    output.append(UInt8(ascii: "\""))
  }

  private func appendParts(
    _ values: TemplateValues, as syntax: Template.Syntax, to output: inout [UInt8], limit: Int
  ) throws(PushOutcome) {
    for part in parts {
      switch part {
      case .literal(let text): try output.append(text, as: syntax, limit: limit)
      case .property(let property): try property.append(values, as: syntax, to: &output, limit: limit)
      }
    }
  }
}

extension TemplateExpression.Property {
  fileprivate func value(_ values: TemplateValues) -> String {
    let value = values[name]
    return value.isEmpty ? fallback : value
  }

  fileprivate func append(
    _ values: TemplateValues, as syntax: Template.Syntax, to output: inout [UInt8], limit space: Int
  ) throws(PushOutcome) {
    let value = value(values)
    if isPercentEncoded { return try output.append(value, as: nil, limit: space) }
    guard let limit, value.utf8.count > limit, value.utf16.count > limit else {
      return try output.append(value, as: syntax, limit: space)
    }
    guard hasEllipsis else { return try output.append(value.clipped(to: limit), as: syntax, limit: space) }
    try output.append(value.clipped(to: max(0, limit - 3)), as: syntax, limit: space)
    try output.append("...".clipped(to: limit), as: syntax, limit: space)
  }
}

extension String {
  /// The longest prefix of at most so many UTF-16 code units that does not divide a character outside the BMP.
  fileprivate func clipped(to limit: Int) -> String {
    var (units, end) = (0, unicodeScalars.startIndex)
    while end < unicodeScalars.endIndex {
      units += UTF16.width(unicodeScalars[end])
      guard units <= limit else { break }
      end = unicodeScalars.index(after: end)
    }
    return String(self[..<end])
  }

  /// Whether the text is a number (RFC 8259 §6): `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`.
  fileprivate var isJSONNumber: Bool {
    var rest = utf8[...]
    func digits() -> Int {
      let count = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }.count
      rest = rest.dropFirst(count)
      return count
    }
    if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
    let first = rest.first
    let count = digits()
    guard count == 1 || count > 1 && first != UInt8(ascii: "0") else { return false }
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      guard digits() > 0 else { return false }
    }
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest = rest.dropFirst()
      if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
      guard digits() > 0 else { return false }
    }
    return rest.isEmpty
  }
}

extension [UInt8] {
  /// Appends text, percent-encoded without a syntax. The text's own length is compared with the limit: encoding makes
  /// it at most six times as long.
  fileprivate mutating func append(_ text: String, as syntax: Template.Syntax?, limit: Int) throws(PushOutcome) {
    guard text.utf8.count <= limit - count else { throw .payloadTooLarge }
    switch syntax {
    case .json: appendEscaped(text)
    case .xml: appendXML(text)
    case .text: append(contentsOf: text.utf8)
    case nil: appendPercentEncoded(text)
    }
  }

  /// Appends text of which every byte but RFC 3986's unreserved characters (§2.3) is percent-encoded.
  fileprivate mutating func appendPercentEncoded(_ text: String) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        append(byte)
      default:
        append(UInt8(ascii: "%"))
        append(Hexadecimal.upperDigit(byte >> 4))
        append(Hexadecimal.upperDigit(byte & 0xF))
      }
    }
  }
}
