package import FanfareCore

/// A value for a parameter of a statement, for both engines.
///
/// SQLite stores a UUID as a blob of 16 bytes, a Boolean as 0 or 1, and texts on one line each: they must not contain
/// line breaks.
package enum Value: Sendable {
  /// NULL if it is nil. PostgreSQL refuses a text with a NUL character, and SQLite would end it there.
  case text(String?)
  case integer(Int64?)
  case bool(Bool)
  case bytes([UInt8]?)
  /// The two big-endian words of a UUID.
  case uuid(high: UInt64, low: UInt64)
  case noUUID
  /// A `text[]`.
  case texts([String])

  package static func int(_ value: Int) -> Self { .integer(Int64(value)) }

  /// For `LIMIT`; at least 1.
  package static func limit(_ value: Int) -> Self { .integer(Int64(max(1, min(value, 1_000_000_000)))) }

  package static func id<Subject>(_ id: Identifier<Subject>) -> Self { .uuid(high: id.high, low: id.low) }

  /// Unix milliseconds; NULL if it is nil.
  package static func time(_ time: UnixTime?) -> Self { .integer(time?.milliseconds) }

  package static func hub(_ hub: HubName) -> Self { .text(hub.rawValue) }
}

extension Parameter {
  init(_ value: Value) {
    self =
      switch value {
      case .text(let text): .text(text)
      case .integer(let number): .int8(number)
      case .bool(let value): .bool(value)
      case .bytes(let bytes): .bytea(bytes)
      case .uuid(let high, let low): .uuid(high: high, low: low)
      case .noUUID: .null(.uuid)
      case .texts(let texts): .texts(texts)
      }
  }

  /// An array of values of one kind.
  init(any values: [Value]) {
    switch values.first {
    case .uuid:
      self = .uuids(
        values.compactMap { value -> (high: UInt64, low: UInt64)? in
          guard case .uuid(let high, let low) = value else { return nil }
          return (high, low)
        })
    case .integer:
      self = .int8s(values.map { value -> Int64? in if case .integer(let number) = value { number } else { nil } })
    default: self = .texts(values.map { value -> String? in if case .text(let text) = value { text } else { nil } })
    }
  }
}
