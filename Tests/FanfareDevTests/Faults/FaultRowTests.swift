import Testing

@testable import fanfare_dev

/// Which rows of the fault suite say that the promises were kept.
struct FaultRowTests {
  private func row(
    inFlight: Int = 0, lost: Int = 0, repeated: Int = 0, each: [Int] = [], limit: RepeatLimit = .none, errors: Int = 0
  ) -> FaultRow {
    FaultRow(
      fault: "a fault", accepted: 100, settled: 100 - inFlight, inFlight: inFlight, lost: lost, repeated: repeated,
      repeatedEach: each, repeatLimit: limit, accountingErrors: errors, observed: nil, secondsToRecover: 1)
  }

  @Test func whatIsLostWrongOrNeverEndsIsNotGood() {
    #expect(row().isGood)
    #expect(!row(inFlight: 1).isGood)
    #expect(!row(lost: 1).isGood)
    #expect(!row(errors: 1).isGood)
  }

  @Test func nothingMayComeTwiceWithoutAReason() {
    #expect(!row(repeated: 1).isGood)
    #expect(row(repeated: 1).tableRow.contains("TOO MANY"))
    #expect(row(repeated: 1000, limit: .some).isGood)
  }

  @Test(arguments: [
    ([], true), ([0, 0], true), ([0, 50], true), ([0, 51], false), ([10, 20, 200], true), ([10, 20, 201], false),
    ([50, 51, 51], false), ([0, 50, 51, 51], false), ([0, 0, 50, 51, 60], true),
  ])
  func aKillMayRepeatWhatAWorkerMayHaveInFlight(each: [Int], isGood: Bool) {
    let repeated = each.reduce(0, +)
    #expect(row(repeated: repeated, each: each, limit: .each(most: 200)).isGood == isGood)
  }

  /// What comes twice after the last kill was looked at came without a reason.
  @Test func whatNoKillHasRepeatedIsNotGood() {
    #expect(!row(repeated: 500, each: [0, 0], limit: .each(most: 200)).isGood)
    #expect(!row(repeated: 31, each: [10, 20], limit: .each(most: 200)).isGood)
  }
}
