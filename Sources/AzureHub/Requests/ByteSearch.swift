extension ArraySlice<UInt8> {
  /// The first place of a text of at least one byte, in linear time (Knuth, Morris and Pratt 1977).
  ///
  /// The standard library's `firstRange(of:)` takes a microsecond a byte, and for some texts the product of both
  /// lengths.
  func firstPlace(of text: [UInt8]) -> Range<Int>? {
    // The length of the longest proper prefix of the text that each of its prefixes ends with.
    var borders = [Int](repeating: 0, count: text.count)
    var length = 0
    for index in text.indices.dropFirst() {
      while length > 0, text[index] != text[length] { length = borders[length - 1] }
      if text[index] == text[length] { length += 1 }
      borders[index] = length
    }
    var matched = 0
    for index in indices {
      while matched > 0, self[index] != text[matched] { matched = borders[matched - 1] }
      if self[index] == text[matched] { matched += 1 }
      if matched == text.count { return index + 1 - matched..<index + 1 }
    }
    return nil
  }
}
