extension Span where Element == UInt8 {
  /// Whether both spans hold the same bytes.
  func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in indices where self[index] != other[index] { return false }
    return true
  }
}

extension Array where Element == UInt8 {
  /// Appends with one copy; a loop over the span in safe Swift checks bounds per byte.
  package mutating func append(copying span: Span<UInt8>) {
    unsafe span.withUnsafeBufferPointer { unsafe self.append(contentsOf: $0) }
  }
}

extension String {
  /// Decodes UTF-8 and repairs invalid sequences.
  package init(copying span: Span<UInt8>) {
    self = unsafe span.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
  }
}
