/// A record's place in a topic.
package struct LogPlace: Hashable, Comparable, Sendable {
  package let partition: Int32
  package let offset: Int64

  package init(partition: Int32, offset: Int64) {
    self.partition = partition
    self.offset = offset
  }

  /// Reads the two numbers with the separator between them; nil for any other text.
  package init?(_ text: some StringProtocol, separator: Character) {
    let numbers = text.split(separator: separator, omittingEmptySubsequences: false)
    guard numbers.count == 2, let partition = Int32(numbers[0]), let offset = Int64(numbers[1]), partition >= 0,
      offset >= 0
    else { return nil }
    self.init(partition: partition, offset: offset)
  }

  package static func < (left: Self, right: Self) -> Bool {
    (left.partition, left.offset) < (right.partition, right.offset)
  }
}

extension LogPlace: CustomStringConvertible {
  /// `partition/offset`.
  package var description: String { "\(partition)/\(offset)" }
}
