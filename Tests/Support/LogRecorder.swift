package import Logging
import Synchronization

/// Records all log messages as text.
package final class LogRecorder: Sendable {
  private let lines = Mutex<[String]>([])

  package init() {}

  /// All lines, with their metadata.
  package var text: String { lines.withLock { $0.joined(separator: "\n") } }

  /// The number of lines that contain the message.
  package func count(of message: String) -> Int { lines.withLock { lines in lines.count { $0.contains(message) } } }

  /// A logger of all levels.
  package var logger: Logger { Logger(label: "test") { _ in Handler(recorder: self) } }

  private func add(_ line: String) {
    lines.withLock { $0.append(line) }
  }

  private struct Handler: LogHandler {
    let recorder: LogRecorder
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      recorder.add("\(event.level) \(event.message) \(metadata) \(event.metadata ?? [:])")
    }
  }
}
