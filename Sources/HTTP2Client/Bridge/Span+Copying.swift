extension Span where Element == UInt8 {
  /// Whether both spans hold the same bytes.
  func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in indices where self[index] != other[index] { return false }
    return true
  }
}

extension Array where Element == UInt8 {
  /// Adds the bytes of `span` with one copy; a loop over the span in safe Swift takes a bounds check per byte.
  package mutating func append(copying span: Span<UInt8>) {
    unsafe span.withUnsafeBufferPointer { unsafe self.append(contentsOf: $0) }
  }
}

extension String {
  /// The text in `span`, UTF-8 with faults repaired.
  package init(copying span: Span<UInt8>) {
    self = unsafe span.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
  }
}
