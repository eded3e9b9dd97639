import FanfareCore
import Testing

@testable import FrontEnd

@Suite struct JSONWriterTests {
  @Test func commasNullsAndEscapesArePlacedExactly() {
    let id = SendID.random()
    let bytes = JSONWriter.object {
      $0.member("id", id)
      $0.object("empty") { _ in }
      $0.object("nested") {
        $0.member("text", "a\"b\\\n")
        $0.object("deeper") { $0.member(named: "k\"", 7) }
        $0.member("after", true)
      }
      $0.array("none", [Int]()) { _, _ in }
      $0.array("missing", [Int]?.none) { _, _ in }
      $0.array("list", [1, 2]) { writer, number in writer.object { $0.member("n", number) } }
      $0.member("raw", json: Array("[1]".utf8))
      $0.member("noText", String?.none)
      $0.member("noTime", UnixTime?.none)
      $0.member("noNumber", Int?.none)
      $0.object(named: "last") { $0.member("negative", -12) }
    }
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"id":"\#(id)","empty":{},"nested":{"text":"a\"b\\\n","deeper":{"k\"":7},"after":true},"none":[],"#
        + #""missing":null,"list":[{"n":1},{"n":2}],"raw":[1],"noText":null,"noTime":null,"noNumber":null,"#
        + #""last":{"negative":-12}}"#)
  }
}
