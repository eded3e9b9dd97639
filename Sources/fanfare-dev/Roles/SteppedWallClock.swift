import FanfareCore
import FoundationEssentials
import Roles
import Synchronization

/// The machine's clock, set off by as many milliseconds as a file says: so a test steps the clock of one process, and
/// never the machine's.
final class SteppedWallClock: WallClock {
  private static let interval = Duration.milliseconds(50)
  private let file: String
  private let offset = Atomic<Int64>(0)

  /// A clock that agrees with the machine's until `run()` has found something else in the file.
  init(file: String) {
    self.file = file
  }

  func now() -> UnixTime { SystemWallClock().now() + .milliseconds(offset.load(ordering: .relaxed)) }

  /// Looks at the file 20 times a second until the task is cancelled. Where there is no number in it, the clock stays
  /// as it is.
  func run() async {
    while true {
      // A file that is missing, or being written, says nothing.
      if let text = try? String(contentsOfFile: file, encoding: .utf8),
        let offset = Int64(text.trimmingSuffix { $0.isNewline })
      {
        self.offset.store(offset, ordering: .relaxed)
      }
      do { try await Task.sleep(for: Self.interval) } catch { return }
    }
  }
}
