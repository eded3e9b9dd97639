/// The settled parts of one attempt, as bits: a record of 10,000 parts must not cost an entry for each.
struct PartSet {
  private var words: [Int: UInt64] = [:]
  private(set) var count = 0

  /// Inserts consecutive parts. Returns how many of them were missing.
  mutating func insert(_ parts: Range<Int>) -> Int {
    let before = count
    var part = parts.lowerBound
    while part < parts.upperBound {
      let (word, bit) = part.quotientAndRemainder(dividingBy: 64)
      let length = min(64 - bit, parts.upperBound - part)
      let mask = (UInt64.max >> (64 - length)) << bit
      let former = words[word] ?? 0
      words[word] = former | mask
      count += (mask & ~former).nonzeroBitCount
      part += length
    }
    return count - before
  }
}
