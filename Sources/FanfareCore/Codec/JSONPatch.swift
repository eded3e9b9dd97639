/// The operations of a JSON Patch (RFC 6902) without `move` and `copy`, for documents whose paths have rules of their own.
///
/// It reads the operations, and applies them in order with the index and the path in every error. The document says what
/// an operation does at a path.
package struct JSONPatch: Sendable {
  /// The most operations of a patch.
  package static let maximumCount = 100

  package enum Kind: String, Sendable { case add, replace, remove, test }

  /// How strictly a body is read.
  package enum Dialect: Sendable {
    /// As RFC 6902 says; no member may be repeated.
    case standard
    /// Names and operations are matched in any letter case, and a value that is a string may contain JSON. There is no
    /// `test`.
    case azure
  }

  package struct Operation: Sendable {
    package let index: Int
    package let kind: Kind
    /// The path (RFC 6901) as it was given; empty without one.
    package let pointer: String
    /// The value as JSON; nil without one.
    package let value: [UInt8]?

    /// The parts of the path, without escapes.
    package var path: [String] {
      pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map { JSONPatch.unescaped($0) }
    }

    /// The value if it is a string.
    package var text: String? {
      get throws(JSONError) {
        guard let value else { return nil }
        var reader = try JSONReader(value[...], refusesLoneSurrogates: true)
        return try reader.nextKind() == .string ? try reader.readString() : nil
      }
    }
  }

  package let operations: [Operation]

  /// Reads a body. Throws an error that names the operation by its index.
  package init(_ body: ArraySlice<UInt8>, _ dialect: Dialect) throws(JSONError) {
    var operations: [Operation] = []
    var reader = try JSONReader(body, refusesLoneSurrogates: true)
    try reader.readArray { (reader) throws(JSONError) in
      guard operations.count < Self.maximumCount else {
        throw reader.error("exceeds the limit of \(Self.maximumCount) operations")
      }
      operations.append(try Self.readOperation(&reader, operations.count, dialect))
    }
    try reader.finish()
    self.operations = operations
  }

  /// Reads an operation. Unknown members are ignored, as RFC 6902 requires.
  private static func readOperation(
    _ reader: inout JSONReader, _ index: Int, _ dialect: Dialect
  ) throws(JSONError) -> Operation {
    var (kind, pointer, value): (Kind?, String?, [UInt8]?)
    let isStandard = dialect == .standard
    try reader.readObject { (key, reader) throws(JSONError) in
      func once(_ isFirst: Bool) throws(JSONError) {
        guard isFirst || !isStandard else { throw reader.duplicateMember() }
      }
      switch isStandard ? key.text : key.text.lowercased() {
      case "op":
        try once(kind == nil)
        let word = try reader.readString()
        kind = Kind(rawValue: isStandard ? word : word.lowercased())
        guard kind != nil, isStandard || kind != .test else {
          throw reader.error(
            isStandard ? "must be add, replace, remove or test" : "must be \"add\", \"remove\" or \"replace\"")
        }
      case "path":
        try once(pointer == nil)
        pointer = try reader.readString()
        guard isStandard || pointer?.hasPrefix("/") == true else { throw reader.error("must begin with '/'") }
      case "value":
        try once(value == nil)
        value = Array(try reader.readRaw())
      default: try reader.skipValue()
      }
    }
    guard let kind else { throw reader.error("must have an op") }
    guard let pointer = pointer ?? (isStandard ? "" : nil) else { throw reader.error("must have a path") }
    return Operation(index: index, kind: kind, pointer: pointer, value: value)
  }

  /// A part of a path without its escapes.
  package static func unescaped(_ part: Substring) -> String {
    String(part).replacing("~1", with: "/").replacing("~0", with: "~")
  }
}
