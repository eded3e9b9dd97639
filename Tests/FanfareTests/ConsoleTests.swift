import Testing

@testable import Roles

@Suite struct ConsoleTests {
  /// One that wraps leaves a line behind each time that it is written over.
  @Test func aLineThatIsWrittenOverDoesNotWrap() {
    #expect(Console.overwriting("long") == "\r\u{1B}[K\u{1B}[?7llong\u{1B}[?7h")
  }
}
