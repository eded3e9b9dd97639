import Testing

@testable import fanfare_dev

/// When the demo's stream of sends counts as complete.
struct StreamReportTests {
  private static let complete = {
    var report = StreamReport()
    (report.posted, report.accepted, report.settled) = (10, 10, 10)
    (report.delivered, report.arrived) = (20, 20)
    return report
  }()

  @Test func everySendIsAcceptedAndSettled() {
    #expect(Self.complete.isComplete(of: 10))
    #expect(!StreamReport().isComplete(of: 10))
    for member in [\StreamReport.posted, \.accepted, \.settled, \.arrived] {
      var report = Self.complete
      report[keyPath: member] -= 1
      #expect(!report.isComplete(of: 10))
    }
  }

  /// A send is posted again if the front end could not say whether Kafka has it.
  @Test func sendOnTopicTwiceCountsOnce() {
    var report = Self.complete
    (report.accepted, report.settled) = (11, 11)
    #expect(report.isComplete(of: 10))
  }
}
