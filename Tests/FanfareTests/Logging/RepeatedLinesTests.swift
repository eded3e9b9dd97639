import FanfareCore
import Logging
import Support
import Synchronization
import Testing

@testable import Roles

/// The lines that a log has written.
final class LogOutput: Sendable {
  private let all = Mutex<[String]>([])

  var lines: [String] { all.withLock { $0 } }

  func take(_ bytes: [UInt8]) { all.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) } }
}

@Suite struct RepeatedLinesTests {
  private let clock = ManualClock()

  private func line(
    _ message: String = "Registry unavailable", _ metadata: Logger.Metadata = [:], level: Logger.Level = .warning
  ) -> LogLine {
    LogLine(time: clock.now(), level: level, logger: "fanfare.api", message: message, metadata: metadata)
  }

  @Test func firstLineIsWrittenAndTheOthersAreCounted() {
    var repeated = RepeatedLines()
    #expect(repeated.take(line()).count == 1)
    for _ in 0..<214 { #expect(repeated.take(line()).isEmpty) }
    #expect(repeated.due(at: clock.now()).isEmpty)
    clock.advance(by: .seconds(30))
    let summaries = repeated.due(at: clock.now())
    #expect(summaries.map(\.repetition?.count) == [214])
    #expect(summaries.map(\.repetition?.within) == [.seconds(30)])
    #expect(summaries.map(\.message) == ["Registry unavailable"])
    // The fault goes on: still counted.
    #expect(repeated.take(line()).isEmpty)
  }

  @Test func kindThatStoppedIsWrittenAtOnceWhenItComesAgain() {
    var repeated = RepeatedLines()
    _ = repeated.take(line())
    clock.advance(by: .seconds(30))
    #expect(repeated.due(at: clock.now()).isEmpty)
    #expect(repeated.kinds == 0)
    let again = repeated.take(line())
    #expect(again.count == 1 && again.first?.repetition == nil)
  }

  @Test func lineAfterTheWindowReportsTheCountWithoutATimer() {
    var repeated = RepeatedLines()
    for _ in 0..<3 { _ = repeated.take(line()) }
    clock.advance(by: .seconds(40))
    let lines = repeated.take(line())
    #expect(lines.map(\.repetition?.count) == [3])
    #expect(lines.map(\.repetition?.within) == [.seconds(40)])
  }

  @Test func countsAreWrittenAtTheEnd() {
    var repeated = RepeatedLines()
    for _ in 0..<3 { _ = repeated.take(line()) }
    #expect(repeated.finish(at: clock.now()).map(\.repetition?.count) == [2])
    #expect(repeated.finish(at: clock.now()).isEmpty)
  }

  @Test func clockThatStepsBackDoesNotSilenceAKind() {
    var repeated = RepeatedLines()
    for _ in 0..<3 { _ = repeated.take(line()) }
    clock.advance(by: .seconds(-3600))
    #expect(repeated.due(at: clock.now()).count == 1)
  }

  @Test func idsCountsAndNumbersInTextMakeNoKind() {
    var repeated = RepeatedLines()
    let written = (0..<1000).flatMap { number in
      repeated.take(
        line(
          "Request refused",
          [
            "request.id": "\(number)", "problem.code": "unavailable",
            "error": "disk full after \(number) bytes of 019f-\(number)a", "kafka.client": "client-\(number)",
          ]))
    }
    #expect(written.count == 1)
    #expect(repeated.take(line("Request refused", ["problem.code": "unavailable", "error": "locked"])).count == 1)
    #expect(repeated.take(line("Request refused", ["problem.code": "internal", "error": "locked"])).count == 1)
  }

  @Test func differentHubsListenersAndTopicsAreWritten() {
    var repeated = RepeatedLines()
    for hub in ["a", "b", "c1", "c2"] { #expect(repeated.take(line("Hub", ["hub": "\(hub)"])).count == 1) }
  }

  @Test func errorIsSaidOnceAndItsRepetitionIsAWarning() {
    var repeated = RepeatedLines()
    #expect(repeated.take(line(level: .error)).map(\.level) == [.error])
    _ = repeated.take(line(level: .error))
    #expect(repeated.finish(at: clock.now()).map(\.level) == [.warning])
  }

  @Test(arguments: [Logger.Level.trace, .debug]) func detailThatWasAskedForIsNotCounted(level: Logger.Level) {
    var repeated = RepeatedLines()
    for _ in 0..<3 { #expect(repeated.take(line(level: level)).count == 1) }
  }

  @Test func memoryIsBoundedWhateverIsLogged() {
    var repeated = RepeatedLines(maximumKinds: 8)
    var written = 0
    for number in 0..<10_000 {
      written += repeated.take(line("Message \(number)", ["hub": "h\(number)"])).count
      #expect(repeated.kinds <= 17)
    }
    #expect(written == 17)
    #expect(repeated.finish(at: clock.now()).compactMap(\.repetition?.count).reduce(0, +) == 10_000 - 17)
  }

  /// 2,400 registrations a second fail for a minute because the disk is full.
  @Test func fullDiskWritesAHandfulOfLines() {
    let output = LogOutput()
    let log = ProcessLog(format: .logfmt, clock: clock, write: { output.take($0) })
    let logger = Logger(label: "fanfare.api") { log.handler(label: $0, level: .info) }
    for second in 0..<60 {
      for number in 0..<2400 {
        logger.warning(
          "Request refused",
          metadata: [
            "request.id": "\(second)-\(number)", "problem.code": "unavailable",
            "problem.detail": "The registry is not available.", "error": "SQLite error 13: database or disk is full",
          ])
      }
      clock.advance(by: .seconds(1))
      log.flush()
    }
    log.finish()
    #expect(output.lines.count <= 4, "\(output.lines)")
    #expect(output.lines.dropFirst().first?.contains("repeated=71999 seconds=30") == true, "\(output.lines)")
  }
}
