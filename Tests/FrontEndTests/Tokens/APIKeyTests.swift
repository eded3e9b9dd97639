import FanfareCore
import Foundation
import Testing

@testable import FrontEnd

@Suite struct APIKeyTests {
  @Test func keysAreRecognisedAndMistypedOnesAreNot() throws {
    let key = APIKey()
    #expect(key.text.wholeMatch(of: try Regex(APIKey.pattern)) != nil)
    let read = try #require(APIKey(key.text))
    #expect(read.id == key.id && read.digest == key.digest && read.digest.count == 32)
    #expect(APIKey.id(key.id) == key.id && APIKey.id("fanfare_" + key.id) == key.id)
    #expect(APIKey.id(key.text) == nil && APIKey.id("") == nil && APIKey.id("fanfare_") == nil)
    // Every single wrong character, and every swap of neighbours.
    let characters = Array(key.text)
    for index in characters.indices {
      var wrong = characters
      wrong[index] = characters[index] == "x" ? "y" : "x"
      #expect(APIKey(String(wrong)) == nil)
      guard index > 0, characters[index] != characters[index - 1] else { continue }
      wrong = characters
      wrong.swapAt(index, index - 1)
      #expect(APIKey(String(wrong)) == nil)
    }
    for wrong in ["", key.text + "0", String(key.text.dropLast()), " " + key.text, "FANFARE_" + key.text.dropFirst(8)] {
      #expect(APIKey(wrong) == nil)
    }
  }

  @Test func keysDifferAndDescriptionsHideTheSecret() {
    let keys = (0..<100).map { _ in APIKey() }
    #expect(Set(keys.map(\.id)).count == 100 && Set(keys.map(\.digest)).count == 100)
    for key in keys { #expect("\(key)" == "API key \(key.id)") }
  }

  @Test func formatStaysAsReleased() throws {
    // A key of the first release: those in use must stay valid.
    let key = try #require(APIKey("fanfare_0123456789AB" + String(repeating: "z", count: 43) + "3syxgq"))
    #expect(key.id == "0123456789AB")
    #expect(Hexadecimal.text(key.digest) == "ecfa7eb5cf455f7f9cc7c491c3f9a563e3c50cd9b3fcb00d6fe0bbaa175104d8")
  }
}
