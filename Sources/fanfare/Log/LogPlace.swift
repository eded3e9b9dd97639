import ArgumentParser

/// A record's place within a topic, as people write it: `partition/offset`.
struct LogPlace: Hashable, Comparable, CustomStringConvertible {
  let partition: Int32
  let offset: Int64

  var description: String { "\(partition)/\(offset)" }

  static func < (left: Self, right: Self) -> Bool { (left.partition, left.offset) < (right.partition, right.offset) }
}

extension LogPlace: ExpressibleByArgument {
  init?(argument: String) {
    let numbers = argument.split(separator: "/", omittingEmptySubsequences: false)
    guard numbers.count == 2, let partition = Int32(numbers[0]), let offset = Int64(numbers[1]), partition >= 0,
      offset >= 0
    else { return nil }
    self.init(partition: partition, offset: offset)
  }
}
