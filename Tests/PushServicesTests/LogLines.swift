import Logging
import Synchronization

/// The messages that are logged.
final class LogLines: Sendable {
  private let messages = Mutex<[String]>([])

  /// A logger that writes here.
  var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

  /// How often the message was logged.
  func count(of message: String) -> Int {
    messages.withLock { messages in messages.count { $0 == message } }
  }

  private struct Handler: LogHandler {
    let lines: LogLines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      lines.messages.withLock { $0.append("\(event.message)") }
    }
  }
}
