import Logging
import ServiceLifecycle
import Support
import Testing

@testable import Roles

@Suite(.timeLimit(.minutes(1))) struct RoleRunTests {
  private struct Broken: Error, CustomStringConvertible {
    let description = "the disk is on fire"
  }

  @Test func errorThatEndsARoleIsSaidWithItsServiceAndReason() async {
    let log = LogRecorder()
    let waiting = UntilShutdown("listener") { try await Task.sleep(for: .seconds(600)) }
    let role = RoleServices(services: [waiting, UntilShutdown("store") { throw Broken() }])
    await #expect(throws: Broken.self) {
      try await RoleRun(logger: log.logger, log: nil, manager: nil).run(await RoleRun.signals()) { role }
    }
    let line = log.text.split(separator: "\n").first { $0.hasPrefix("error Stopped because of an error") } ?? ""
    #expect(line.contains("the disk is on fire") && line.contains(#""service": store"#), "\(log.text)")
    #expect(log.count(of: "notice Stopped ") == 0)
  }

  @Test func countsOfRepeatedLinesAreWrittenWhenTheRoleEnds() async {
    let output = LogOutput()
    let log = ProcessLog(format: .logfmt, write: { output.take($0) })
    let logger = Logger(label: "fanfare.api") { log.handler(label: $0, level: .info) }
    let role = RoleServices(services: [
      UntilShutdown("store") {
        for _ in 0..<3 { logger.warning("Disk full") }
        throw Broken()
      }
    ])
    await #expect(throws: Broken.self) {
      try await RoleRun(logger: logger, log: log, manager: nil).run(await RoleRun.signals()) { role }
    }
    #expect(output.lines.count { $0.contains(#"msg="Disk full""#) } == 2)
    #expect(output.lines.contains { $0.contains("repeated=2") })
  }

  /// A service whose shutdown waits for that of another one.
  private struct Meeting: Service {
    let own: AsyncStream<Never>.Continuation
    let other: AsyncStream<Never>

    func run() async throws {
      try await gracefulShutdown()
      own.finish()
      for await _ in other {}
    }
  }

  @Test func servicesTogetherShutDownAtTheSameTime() async throws {
    let (first, endFirst) = AsyncStream.makeStream(of: Never.self)
    let (second, endSecond) = AsyncStream.makeStream(of: Never.self)
    let together = Together(services: [
      Meeting(own: endFirst, other: second), Meeting(own: endSecond, other: first),
    ])
    let group = ServiceGroup(services: [together], logger: LogRecorder().logger)
    let running = Task { try await group.run() }
    await group.triggerGracefulShutdown()
    try await running.value
  }

  @Test func endOfOneServiceEndsThoseTogetherWithIt() async {
    let waiting = UntilShutdown("listener") { try await Task.sleep(for: .seconds(600)) }
    let together = Together(services: [waiting, UntilShutdown("store") {}])
    await #expect(throws: ServiceGroupError.self) { try await together.run() }
  }
}
