import HTTPTypes

/// The value of an `Idempotency-Key` field: any 1 to 255 printable ASCII characters, taken as they are. A UUID is
/// usual.
struct IdempotencyKey: Hashable, Sendable {
  /// The most characters a key may have.
  static let maximumLength = 255

  let text: String

  /// The key that a request has; nil when it has none. Throws `.malformedRequest`, naming the field, for one that is
  /// empty, too long, not printable ASCII, or given twice: a caller who gives a key counts on it.
  init?(of headers: HTTPFields) throws(Refusal) {
    let values = headers[values: .idempotencyKey]
    guard let value = values.first else { return nil }
    guard values.count == 1 else { throw Refusal(.malformedRequest, "Idempotency-Key must be given once") }
    guard (1...Self.maximumLength).contains(value.utf8.count), value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
    else {
      throw Refusal(
        .malformedRequest, "Idempotency-Key must be 1 to \(Self.maximumLength) printable ASCII characters")
    }
    text = value
  }
}
