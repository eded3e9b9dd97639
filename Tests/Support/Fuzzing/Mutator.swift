import FanfareCore

/// Random numbers that are the same in every run, seeded by the test.
package struct SeededGenerator: RandomNumberGenerator {
  private var generator: SplitMix64

  package init(seed: UInt64) {
    generator = SplitMix64(seed: seed)
  }

  package mutating func next() -> UInt64 { generator.next() }
}

/// Damages JSON documents as a faulty or hostile writer might. The same seed makes the same changes.
package struct Mutator {
  private var generator: SeededGenerator

  package init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
  }

  /// The inserted pieces: special cases of JSON, of numbers and of UTF-8.
  private static let pieces: [[UInt8]] =
    [
      "{", "}", "[", "]", "\"", "\\", ":", ",", "null", "true", "0", "-", "-0", "1e999", "1.5", "9223372036854775808",
      "-9223372036854775809", "99999999999999999999999999999999", "9223372036854775807", "-1", "2147483648", #"\u0000"#,
      #"\ud800"#, #"\udc00\ud800"#, #"\u12"#, "\u{0}", "\u{7F}", "\u{FEFF}", "é", "👾", "\"\"", "{}", "[]", #""a":1,"#,
      #""1970-01-01T00:00:00Z""#, #""99999-12-31T23:59:60Z""#, #""username:""#,
      String(repeating: "[", count: 200), String(repeating: #"{"a":"#, count: 200), String(repeating: "9", count: 400),
    ].map { Array($0.utf8) } + [
      [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82], [0x80],
    ]

  /// Returns the document with one to four random changes, which rarely leave it as it was.
  package mutating func mutate(_ document: [UInt8]) -> [UInt8] {
    var document = document
    for _ in 0..<Int.random(in: 1...4, using: &generator) { change(&document) }
    return document
  }

  private mutating func change(_ document: inout [UInt8]) {
    guard !document.isEmpty else { return document.append(contentsOf: piece()) }
    let place = Int.random(in: 0..<document.count, using: &generator)
    let range = place..<min(document.count, place + Int.random(in: 1...24, using: &generator))
    switch Int.random(in: 0..<10, using: &generator) {
    case 0: document[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
    case 1: document[place] = UInt8.random(in: 0...255, using: &generator)
    case 2: document.removeSubrange(range)
    case 3: document.removeSubrange(place...)
    case 4: document.insert(contentsOf: piece(), at: place)
    case 5: document.insert(contentsOf: document[range], at: Int.random(in: 0...document.count, using: &generator))
    case 6: repeatMember(of: &document)
    case 7: replaceValue(in: &document, from: place)
    case 8: replaceNumber(in: &document, from: place)
    default: swap(&document, place)
    }
  }

  private mutating func piece() -> [UInt8] { Self.pieces.randomElement(using: &generator) ?? [] }

  /// Repeats a member: the text from one comma to the next.
  private mutating func repeatMember(of document: inout [UInt8]) {
    let commas = document.indices.filter { document[$0] == UInt8(ascii: ",") }
    guard commas.count > 1 else { return }
    let index = Int.random(in: 0..<commas.count - 1, using: &generator)
    document.insert(contentsOf: document[commas[index]..<commas[index + 1]], at: commas[index])
  }

  /// Replaces a member's value.
  private mutating func replaceValue(in document: inout [UInt8], from place: Int) {
    guard let colon = document[place...].firstIndex(of: UInt8(ascii: ":")) else { return }
    let end = document[colon...].firstIndex { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "}") } ?? document.endIndex
    document.replaceSubrange((colon + 1)..<max(end, colon + 1), with: piece())
  }

  /// Replaces a number by a random one.
  private mutating func replaceNumber(in document: inout [UInt8], from place: Int) {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    guard let start = document[place...].firstIndex(where: digits.contains) else { return }
    let end = document[start...].firstIndex { !digits.contains($0) } ?? document.endIndex
    let number = Int64(bitPattern: generator.next() >> UInt64.random(in: 0..<64, using: &generator))
    document.replaceSubrange(start..<end, with: Array("\(number)".utf8))
  }

  private mutating func swap(_ document: inout [UInt8], _ place: Int) {
    document.swapAt(place, Int.random(in: 0..<document.count, using: &generator))
  }
}
