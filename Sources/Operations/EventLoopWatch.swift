import CoreMetrics
import NIOCore
import Synchronization

/// Measures the longest turn of event loops: a loop that is busy with one connection serves none of the others.
///
/// A task on each loop is due ten times a second. How late it runs is the rest of the turn that it waited for, and a
/// task that has not run yet shows a turn that goes on.
struct EventLoopWatch {
  /// The times of one loop, in nanoseconds of the event loops' clock.
  private final class Report: Sendable {
    /// When the task must run.
    let due: Atomic<UInt64>
    /// The longest delay since the last look.
    let longest = Atomic<UInt64>(0)

    init(due: NIODeadline) { self.due = Atomic(due.uptimeNanoseconds) }

    func taskRan() {
      let now = NIODeadline.now().uptimeNanoseconds
      longest.max(now &- min(now, due.load(ordering: .relaxed)), ordering: .relaxed)
      due.store(now &+ UInt64(EventLoopWatch.interval.nanoseconds), ordering: .relaxed)
    }

    /// Returns the longest delay since the last call.
    func look() -> UInt64 {
      let (due, now) = (due.load(ordering: .relaxed), NIODeadline.now().uptimeNanoseconds)
      return max(longest.exchange(0, ordering: .relaxed), now &- min(now, due))
    }
  }

  private static let interval = TimeAmount.milliseconds(100)
  /// The seconds whose longest turn is shown, so that no scrape misses it.
  private static let window = 60

  private let loops: [any EventLoop]
  private let gauge: Gauge

  init(_ groups: [any EventLoopGroup], metrics: any MetricsFactory) {
    loops = groups.flatMap { Array($0.makeIterator()) }
    gauge = Gauge(label: "fanfare_event_loop_longest_turn_seconds", factory: metrics)
  }

  /// Keeps the metric current until the task is cancelled.
  func run(every interval: Duration = .seconds(1)) async {
    let reports = loops.map { _ in Report(due: .now()) }
    let tasks = zip(loops, reports).map { loop, report in
      loop.scheduleRepeatedTask(initialDelay: .zero, delay: Self.interval) { _ in report.taskRan() }
    }
    defer { for task in tasks { task.cancel() } }
    var latest: [UInt64] = []
    while true {
      latest.append(reports.map { $0.look() }.max() ?? 0)
      if latest.count > Self.window { latest.removeFirst() }
      gauge.record(Double(latest.max() ?? 0) / 1e9)
      do { try await Task.sleep(for: interval) } catch { return }
    }
  }
}
