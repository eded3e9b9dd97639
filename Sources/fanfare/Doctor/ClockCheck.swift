import FanfareCore
import Logging
import Operations
import RDKafka
import Roles

/// The clocks of the machines, against this one's: those of databases and of every process that reports itself.
struct ClockCheck {
  static let area = "clock"
  /// A process reports itself every second, and reading takes a moment.
  private static let listening = Duration.seconds(2.5)
  private static let tolerance = Duration.seconds(2)

  let settings: Settings
  let logger: Logger

  /// Listens to the processes' reports for a moment; nothing if there are none.
  func findings() async -> [CheckResult] {
    var differences: [String: Duration] = [:]
    do {
      let reader = try LogReader(
        client: try settings.kafka.client("doctor-clock"), timeout: Self.listening, logger: logger)
      let spans = try await reader.spans(of: [settings.kafka.topics.pulse])
      let scan = try reader.scan(spans.map { LogSpan(partition: $0.partition, start: $0.end, end: $0.end + 10_000) })
      let deadline = ContinuousClock.now + Self.listening
      while ContinuousClock.now < deadline, let records = try await scan.next() {
        let now = SystemWallClock().now()
        for pulse in records.compactMap({ Pulse(record: $0.value) }) {
          let process = pulse.process
          let difference = pulse.time < now ? now - pulse.time : pulse.time - now
          // The least: a report may have waited for Kafka.
          let name = "\(process.role) \(process.pid) on \(process.host)"
          differences[name] = min(differences[name] ?? difference, difference)
        }
      }
    } catch {
      // The time is over, or the checks of Kafka say what is wrong.
    }
    let wrong = differences.filter { $0.value >= Self.tolerance }.sorted { $0.key < $1.key }
    guard wrong.isEmpty else { return wrong.map { Self.finding("of \($0.key)", $0.value) } }
    guard let largest = differences.values.max() else { return [] }
    let text = "the clocks of \(differences.count) processes differ by at most \((largest / .seconds(1)).text) s"
    return [.ok(Self.area, text)]
  }

  /// The finding about a clock that differs from this machine's.
  static func finding(_ whose: String, _ difference: Duration) -> CheckResult {
    let text = "the clock \(whose) differs by \((difference / .seconds(1)).text) s"
    guard difference >= tolerance else { return .ok(area, text) }
    return .warning(area, text, remedy: "synchronise the clocks of all machines (chrony, systemd-timesyncd)")
  }
}
