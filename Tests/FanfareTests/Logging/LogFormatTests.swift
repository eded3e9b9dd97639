import FanfareCore
import Foundation
import Logging
import Operations
import Support
import Testing

@testable import Roles

@Suite struct LogFormatTests {
  private static let time = UnixTime(milliseconds: 1_795_248_000_123)

  private static func line(_ metadata: Logger.Metadata = [:], message: String = "Broker lost") -> LogLine {
    LogLine(time: time, level: .warning, logger: "fanfare.worker", message: message, metadata: metadata)
  }

  private static func text(_ line: LogLine, _ format: LogFormat) -> String {
    String(decoding: format.bytes(of: line), as: UTF8.self)
  }

  @Test(arguments: [
    (LogFormat.text, #"2026-11-21T08:00:00.123Z warning  Broker lost a=1 b="x y" logger=fanfare.worker"#),
    (.logfmt, #"time=2026-11-21T08:00:00.123Z level=warning msg="Broker lost" logger=fanfare.worker a=1 b="x y""#),
    (
      .json,
      #"{"time":"2026-11-21T08:00:00.123Z","level":"warning","msg":"Broker lost","logger":"fanfare.worker","#
        + #""a":"1","b":"x y"}"#
    ),
  ]) func timeLevelAndMessageComeFirstThenSortedData(format: LogFormat, expected: String) {
    #expect(Self.text(Self.line(["b": "x y", "a": "1"]), format) == expected + "\n")
  }

  @Test(arguments: LogFormat.allCases) func noDataBreaksALineOrCommandsATerminal(format: LogFormat) {
    let harm = "x\nlevel=error\r\u{1B}[2J\u{2028}\u{202E}\u{0}"
    let text = Self.text(Self.line(["error": "\(harm)", "key \n=\"": "1"], message: "Lost \u{1B}[31m\n"), format)
    #expect(text.hasSuffix("\n") && text.dropLast().allSatisfy { !$0.isNewline })
    let isPrintable = text.dropLast().unicodeScalars.allSatisfy { $0.isASCII && $0.value >= 0x20 && $0.value != 0x7F }
    #expect(isPrintable, "\(text.debugDescription)")
  }

  /// A server ends by cancellation with its role.
  @Test(.timeLimit(.minutes(1))) func endOfAServerIsNoError() async throws {
    let output = LogOutput()
    let log = ProcessLog(format: .logfmt, write: { output.take($0) })
    let logger = Logger(label: "fanfare.api") { log.handler(label: $0, level: .debug) }
    let routes = OperationsRoutes(metrics: PrometheusMetrics(), health: HealthRegistry(readiness: []))
    let server = OperationsServer(host: "127.0.0.1", port: 0, routes: routes, logger: logger)
    let running = Task { try await server.run() }
    _ = try await server.boundPort()
    running.cancel()
    _ = await running.result
    #expect(!output.lines.contains { $0.contains("level=error") }, "\(output.lines)")
  }

  @Test func jsonKeepsStructureAndItsOwnMembers() throws {
    let metadata: Logger.Metadata = [
      "time": "never", "list": ["a", "b\n"], "nested": ["k": "v"],
    ]
    let object = try JSONSerialization.jsonObject(with: Data(LogFormat.json.bytes(of: Self.line(metadata))))
    let members = try #require(object as? [String: Any])
    #expect(members["time"] as? String == "2026-11-21T08:00:00.123Z")
    #expect(members["time_"] as? String == "never")
    #expect(members["list"] as? [String] == ["a", "b\n"])
    #expect(members["nested"] as? [String: String] == ["k": "v"])
  }

  @Test(arguments: [
    (LogFormat.text, "Broker lost (repeated 214 times in 30 s)"), (.logfmt, "repeated=214 seconds=30"),
    (.json, #""repeated":214,"seconds":30"#),
  ]) func repetitionsAreNamed(format: LogFormat, expected: String) {
    var line = Self.line()
    line.repetition = (214, .seconds(30))
    #expect(Self.text(line, format).contains(expected))
  }

  @Test func loggersOfTheProcessWriteOneLineForEachEvent() {
    let output = LogOutput()
    let log = ProcessLog(format: .logfmt, clock: ManualClock(), write: { output.take($0) })
    var logger = Logger(label: "fanfare.api") { log.handler(label: $0, level: .info) }
    logger[metadataKey: "hub"] = "shop"
    logger.notice("Listening", metadata: ["listener": "api"])
    logger.debug("Detail")
    logger.notice("Listening", metadata: ["listener": "operations"])
    let start = "time=2026-11-21T08:00:00.000Z level=notice msg=Listening logger=fanfare.api hub=shop listener="
    #expect(output.lines == [start + "api\n", start + "operations\n"])
  }

  @Test func securityEventsAreNeverCountedInsteadOfWritten() {
    let output = LogOutput()
    let log = ProcessLog(format: .json, clock: ManualClock(), write: { output.take($0) })
    let security = SecurityLog(
      logger: Logger(label: SecurityLog.label) { log.handler(label: $0, level: .notice) })
    for _ in 0..<50 { security.record(.loginFailed, requestID: "r", user: "bob") }
    #expect(output.lines.count == 50)
    #expect(output.lines.allSatisfy { $0.contains(#""logger":"fanfare.security""#) })
  }
}
