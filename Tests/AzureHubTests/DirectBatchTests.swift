import FanfareCore
import Support
import Testing

@testable import AzureHub
@testable import FrontEnd

/// The documents of direct sends to several devices, hostile ones too.
@Suite(.timeLimit(.minutes(1))) struct DirectBatchTests {
  private static let type = "multipart/mixed; boundary=b"

  private static func part(_ name: String, _ content: String, head: String = "") -> String {
    "--b\r\n\(head)Content-Disposition: inline; name=\(name)\r\n\r\n\(content)\r\n"
  }

  @Test func headOfAPartIsBounded() throws {
    let notification = Self.part("notification", "{}")
    for (size, isRead) in [(3000, true), (5000, false)] {
      let filler = "X-Filler: " + String(repeating: "x", count: size) + "\r\n"
      let body = notification + Self.part("devices", #"["0a"]"#, head: filler) + "--b--"
      let batch = Result { () throws(Refusal) in try DirectBatch(Array(body.utf8)[...], type: Self.type) }
      #expect((try? batch.get().handles) == (isRead ? ["0a"] : nil))
    }
  }

  /// Each took seconds for a megabyte, in which the connection's event loop did nothing else.
  @Test(arguments: [
    "-", "--", "--b", ";", ";a=b", "\n", "\r", "\r\n", "a\r\n", "'", "[", "\"", "\u{301}", "Content-Disposition: x;",
  ])
  func nonsenseIsRefused(_ unit: String) {
    let filling = String(repeating: unit, count: 100_000 / unit.utf8.count)
    let head = Self.part("notification", "{}") + "--b\r\n"
    for body in [filling, head + filling, head + "Content-Disposition: x" + filling, Self.part("devices", filling)] {
      #expect(throws: Refusal.self) { try DirectBatch(Array((body + "\r\n--b--").utf8)[...], type: Self.type) }
    }
  }

  @Test func firstPlaceIsThatOfTheStandardLibrary() {
    var random = SplitMix64(seed: 39)
    for _ in 0..<5000 {
      let letters: [UInt8] = [0x2D, 0x62, 0x0A]
      func text(_ length: ClosedRange<Int>) -> [UInt8] {
        (0..<Int.random(in: length, using: &random)).map { _ in letters[Int.random(in: 0...2, using: &random)] }
      }
      let (whole, sought) = (text(0...40), text(1...6))
      let slice = whole[min(3, whole.count)...]
      #expect(slice.firstPlace(of: sought) == slice.firstRange(of: sought))
    }
  }
}
