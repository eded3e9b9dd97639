import Testing

@testable import FanfareCore

/// Code that handles eight bytes at a time gives the same results as code for single bytes.
struct WordwiseTests {
  /// Every byte at every place of texts of up to 19 bytes: inside a word, between two words and in the remainder.
  @Test func specialCharacterEndsPlainTextAtEveryPlace() {
    for length in 0...19 {
      for place in 0..<length {
        for byte in UInt8.min...UInt8.max {
          var text = [UInt8](repeating: UInt8(ascii: "a"), count: length)
          text[place] = byte
          let isSpecial = byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
          #expect(text.span.plainCount(from: 0) == (isSpecial ? place : length))
        }
      }
    }
  }

  @Test(arguments: [0, 1, 7, 8, 9, 16]) func firstOfTwoSpecialCharactersCounts(place: Int) {
    for (first, second) in [(0x22, 0x23), (0x5C, 0x5D), (0x1F, 0x20), (0x00, 0x00), (0x22, 0x5C), (0x21, 0x22)]
      as [(UInt8, UInt8)]
    {
      var text = [UInt8](repeating: 0xFF, count: 24)
      (text[place], text[place + 1]) = (first, second)
      #expect(text.span.plainCount(from: 0) == (first == 0x21 ? place + 1 : place))
      #expect(text.span.plainCount(from: place) == (first == 0x21 ? 1 : 0))
    }
  }

  @Test(arguments: [0, 1, 9, 10, 0x0123_4567, 0x89AB_CDEF, 0xFFFF_FFFF] as [UInt32])
  func hexadecimalDigitsEqualTheNumber(number: UInt32) {
    let text = String(number, radix: 16)
    let padded = String(repeating: "0", count: 8 - text.utf8.count) + text
    var written: [UInt8] = []
    written.append(addingCapacity: 8) { $0.append(bytesOf: Hexadecimal.digits(number)) }
    #expect(written == Array(padded.utf8))
  }

  @Test func writtenIdentifierIsReadBack() {
    var generator = SplitMix64(seed: 11)
    for _ in 0..<1000 {
      let id = SendID(high: generator.next(), low: generator.next())
      let text = id.description
      let groups = text.split(separator: "-")
      #expect(groups.map(\.count) == [8, 4, 4, 4, 12])
      #expect(groups.prefix(3).joined() == hexadecimal(id.high) && groups.suffix(2).joined() == hexadecimal(id.low))
      #expect(SendID(text) == id && SendID(text.uppercased()) == id)
    }
  }

  private func hexadecimal(_ word: UInt64) -> String {
    let text = String(word, radix: 16)
    return String(repeating: "0", count: 16 - text.count) + text
  }

  @Test func bytesAreTwoDigitsEach() {
    #expect(Hexadecimal.text([0x00, 0x7F, 0xA5]) == "007fa5")
    #expect(Hexadecimal.text([]).isEmpty)
  }
}
