import Testing

@testable import Roles
@testable import fanfare

@Suite struct TransferProgressTests {
  @Test func timeLeftIsEstimatedFromThisRunOnly() {
    let half = TransferProgress.State(count: 500_000, share: 0.5)
    #expect(
      TransferProgress.text(half, after: .seconds(10))
        == "[###############...............]  50 %  500000 registrations  50000/s  0:00:10 left")
    let resumed = TransferProgress.State(count: 1000, share: 0.75, shareBefore: 0.5, detail: "12 MB, 1 skipped")
    #expect(
      TransferProgress.text(resumed, after: .seconds(3600))
        == "[######################........]  75 %  1000 registrations  0/s  1:00:00 left  12 MB, 1 skipped")
  }

  @Test func withoutTotalThereIsNoBar() {
    #expect(TransferProgress.text(TransferProgress.State(count: 7), after: .zero) == "7 registrations  0/s")
    #expect(
      TransferProgress.text(TransferProgress.State(count: 7, share: 1), after: .seconds(7)).hasSuffix(
        "100 %  7 registrations  1/s"))
  }
}

@Suite struct ConsoleTests {
  /// A wrapped line would leave a line behind each time that it is overwritten.
  @Test func replacedLineDoesNotWrap() {
    #expect(Console.overwriting("long") == "\r\u{1B}[K\u{1B}[?7llong\u{1B}[?7h")
  }
}
