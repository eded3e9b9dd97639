/// A template for a text, compiled once and rendered for every send: literal bytes and the values between them.
///
/// A property's value never leaves the JSON string, XML attribute, XML text or plain text in which its expression
/// stands.
package struct Template: Hashable, Sendable {
  /// The most bytes of a template.
  package static let maximumLength = 16_384

  /// The syntax around the expressions.
  package enum Syntax: Hashable, Sendable {
    /// Every string that is a value may be an expression; names of members may not.
    case json
    /// Every attribute's value and every text between tags may be an expression.
    case xml
    /// The whole text may be an expression: a header field's value, or a part of a portable message.
    case text
  }

  enum Piece: Sendable {
    case bytes([UInt8])
    case value(TemplateExpression)
  }

  /// The template as it was given.
  package let source: String
  package let syntax: Syntax
  private let pieces: [Piece]
  private let expectedLength: Int

  /// Compiles a template.
  package init(_ source: String, _ syntax: Syntax) throws(TemplateError) {
    guard source.utf8.count <= Self.maximumLength else {
      throw TemplateError(problem: "must have at most \(Self.maximumLength) bytes")
    }
    (self.source, self.syntax) = (source, syntax)
    pieces =
      switch syntax {
      case .json: try TemplatePieces(json: source).pieces
      case .xml: try TemplatePieces(xml: source).pieces
      case .text: [try TemplateExpression(source).map(Piece.value) ?? .bytes(Array(source.utf8))]
      }
    expectedLength = source.utf8.count + 64 * pieces.count
  }

  /// Compiles the payload of a platform: JSON, or where it is a text usually XML.
  package init(payload source: String, for platform: Platform) throws(TemplateError) {
    let first = source.unicodeScalars.first { !$0.properties.isWhitespace && $0 != "\u{FEFF}" }
    switch (platform.vocabulary.nativeForm, first) {
    case (.text, "<"): try self.init(source, .xml)
    case (.text, "{"), (.text, "["), (.json, "{"): try self.init(source, .json)
    case (.text, _): throw TemplateError(problem: "must be XML or JSON")
    case (.json, _): throw TemplateError(problem: "must be a JSON object")
    }
  }

  /// The names of the properties that it inserts, in lower case.
  package var names: Set<String> {
    pieces.reduce(into: []) { names, piece in
      if case .value(let expression) = piece { names.formUnion(expression.names) }
    }
  }

  /// Inserts the values. Allocates one buffer.
  ///
  /// Throws `.payloadTooLarge` where the result would exceed `limit` bytes, before it makes the rest of it: a template
  /// can insert one value some thousand times.
  package func render(_ values: TemplateValues, limit: Int = .max) throws(PushOutcome) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(min(expectedLength, limit))
    for piece in pieces {
      switch piece {
      case .bytes(let bytes): output.append(contentsOf: bytes)
      case .value(let expression): try expression.append(values, as: syntax, to: &output, limit: limit)
      }
      guard output.count <= limit else { throw .payloadTooLarge }
    }
    return output
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.syntax == right.syntax && left.source.utf8.elementsEqual(right.source.utf8)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(source) }
}

/// The values that expressions insert: a send's properties, and behind them a device's own.
package struct TemplateValues: Sendable {
  private let properties: [String: String]
  private let attributes: [String: String]

  /// Values by names in lower case. A property of the send has precedence over the device's attribute of that name.
  package init(properties: [String: String], attributes: [String: String] = [:]) {
    (self.properties, self.attributes) = (properties, attributes)
  }

  subscript(name: String) -> String { properties[name] ?? attributes[name] ?? "" }
}
