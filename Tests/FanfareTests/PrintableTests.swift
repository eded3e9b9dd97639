import FanfareCore
import Foundation
import RDKafka
import Support
import Testing

@testable import Roles
@testable import fanfare

@Suite struct PrintableTests {
  @Test(arguments: [
    ("plain, Grüße 你好 👩‍👩‍👧", "plain, Grüße 你好 👩‍👩‍👧"), ("\u{1B}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
    ("\u{9B}2J", "\\u{9b}2J"), ("one\ntwo\r\tthree", "one\\u{a}two\\u{d}\\u{9}three"),
    ("\u{202E}gnp.exe", "\\u{202e}gnp.exe"), ("\u{7F}", "\\u{7f}"),
  ]) func controlCharactersAreEscaped(text: String, expected: String) { #expect(Printable.line(text) == expected) }

  @Test func linesKeepTheirEnds() { #expect(Printable.lines("a\n\tb\r\u{1B}") == "a\n\tb\\u{d}\\u{1b}") }

  @Test func escapedJSONHasTheSameMeaning() throws {
    let text = #"{"a": "\#u{9B}2J\#u{E0001}\#u{202E}x"}"#
    let safe = Printable.json(text)
    #expect(safe == #"{"a": "\u009b2J\udb40\udc01\u202ex"}"#)
    let (one, other) = (
      try JSONDecoder().decode([String: String].self, from: Data(text.utf8)),
      try JSONDecoder().decode([String: String].self, from: Data(safe.utf8))
    )
    #expect(one == other)
  }

  @Test func deadLetterCannotForgeALine() {
    let letter = DeadLetter(
      reason: .undecodable, detail: "x\n0/1  forged\u{1B}[2J", origin: .init(topic: "t\u{7}", partition: 0, offset: 1),
      at: UnixTime(milliseconds: 0), key: nil, value: [])
    let item = DeadLetterBox.Item(place: LogPlace(partition: 0, offset: 0), letter: letter, record: [])
    let text = LetterLine(item).text
    #expect(!text.contains("\n") && !text.contains("\u{1B}") && !text.contains("\u{7}"))
    #expect(text.contains("x\\u{a}0/1  forged\\u{1b}[2J"))
  }
}
