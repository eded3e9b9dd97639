import Dispatch
import FoundationEssentials
package import Logging
import Synchronization

/// A file that is read again when it changes.
///
/// It is read on a queue of its own: the caller that triggers it waits, others get the former content. If the new
/// content is invalid, the former stays and the reason is logged once.
package final class WatchedFile<Content: Sendable>: Sendable {
  private struct State {
    var content: Content
    var stamp: FileStamp
    /// The number of successful reloads.
    var generation = 0
    var nextCheck: ContinuousClock.Instant
  }

  private let path: String
  private let name: String
  private let interval: Duration
  private let now: @Sendable () -> ContinuousClock.Instant
  private let logger: Logger
  private let read: @Sendable (String, Bool) throws(FrontEndError) -> Content
  private let queue = DispatchQueue(label: "fanfare.watched-file")
  private let state: Mutex<State>

  /// Reads the file. Throws the error of `read`.
  ///
  /// `name` is the kind of file in log lines: "Password file". Between two checks whether the file has changed lies at
  /// least `interval`. `read` reads the file at a path, for the first time or again; its errors contain no secrets.
  package init(
    path: String, name: String, interval: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant,
    logger: Logger,
    read: @escaping @Sendable (_ path: String, _ isFirst: Bool) throws(FrontEndError) -> Content
  ) throws(FrontEndError) {
    (self.path, self.name, self.interval, self.now, self.logger) = (path, name, interval, now, logger)
    self.read = read
    // Before reading: a change during reading is then detected as a later change.
    let stamp = FileStamp(path: path)
    state = Mutex(State(content: try read(path, true), stamp: stamp, nextCheck: now() + interval))
  }

  /// Returns the content and its generation, after a check whether the file has changed if one is due.
  package func latest() async -> (content: Content, generation: Int) {
    let now = now()
    let isDue = state.withLock { state in
      guard now >= state.nextCheck else { return false }
      state.nextCheck = now + interval
      return true
    }
    if isDue {
      await withCheckedContinuation { continuation in
        queue.async {
          self.reload()
          continuation.resume()
        }
      }
    }
    return state.withLock { ($0.content, $0.generation) }
  }

  /// Whether `latest()` would at once return the content of a generation.
  func isCurrent(_ generation: Int) -> Bool {
    let now = now()
    return state.withLock { $0.generation == generation && now < $0.nextCheck }
  }

  private func reload() {
    let stamp = FileStamp(path: path)
    guard stamp != state.withLock({ $0.stamp }) else { return }
    do {
      let content = try read(path, false)
      state.withLock { state in
        state.content = content
        state.stamp = stamp
        state.generation += 1
      }
      logger.notice("\(name) reloaded", metadata: [LogKeys.path: "\(path)"])
    } catch {
      // Marked as seen, so that the error is logged once. The next change triggers another reload.
      state.withLock { $0.stamp = stamp }
      logger.error(
        "Changed \(name.lowercased()) ignored: it is invalid",
        metadata: [LogKeys.path: "\(path)", LogKeys.cause: "\(error)"])
    }
  }
}

/// Identifies a version of a file: its modification time, size and inode.
/// Follows symbolic links, because the mounted secrets of Kubernetes are replaced by changing a link.
struct FileStamp: Hashable {
  private let modified: Double?
  private let rest: [String]

  /// A missing file has a stamp too, which differs from that of any file.
  init(path: String) {
    let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    // If the file cannot be inspected, reading it reports why.
    let attributes = (try? FileManager.default.attributesOfItem(atPath: target)) ?? [:]
    modified = (attributes[.modificationDate] as? Date)?.timeIntervalSince1970
    rest = [.size, .systemFileNumber].map { (key: FileAttributeKey) in attributes[key].map { "\($0)" } ?? "" }
  }
}
