import FanfareCore
import Logging
import Operations
import Synchronization

/// The log of a process: gives all its loggers one form, counts repeated lines, and writes to standard error.
///
/// Lines of the security log are never counted instead of written: that log has a limit of its own.
package final class ProcessLog: Sendable {
  private let format: LogFormat
  private let clock: any WallClock
  private let write: @Sendable ([UInt8]) -> Void
  private let repeated = Mutex(RepeatedLines())

  /// `write` gets one line with its end; it may be called by any thread.
  init(
    format: LogFormat, clock: any WallClock = SystemWallClock(),
    write: @escaping @Sendable ([UInt8]) -> Void = { StandardError.write($0) }
  ) {
    (self.format, self.clock, self.write) = (format, clock, write)
  }

  /// A handler for the loggers with a label.
  func handler(label: String, level: Logger.Level) -> any LogHandler {
    Handler(log: self, label: label, logLevel: level)
  }

  /// Writes the counts of repeated lines when they are due, until the task is cancelled.
  func run() async {
    while true {
      do { try await Task.sleep(for: .seconds(1)) } catch { return }
      flush()
    }
  }

  /// Writes the counts of repeated lines that are due.
  func flush() {
    let now = clock.now()
    for line in repeated.withLock({ $0.due(at: now) }) { write(format.bytes(of: line)) }
  }

  /// Writes all counts of repeated lines: the process ends.
  func finish() {
    let now = clock.now()
    for line in repeated.withLock({ $0.finish(at: now) }) { write(format.bytes(of: line)) }
  }

  private func take(_ event: LogEvent, at level: Logger.Level, label: String, metadata: Logger.Metadata) {
    let line = LogLine(
      time: clock.now(), level: level, logger: label, message: event.message.description, metadata: metadata)
    let lines = label == SecurityLog.label ? [line] : repeated.withLock { $0.take(line) }
    for line in lines { write(format.bytes(of: line)) }
  }

  private struct Handler: LogHandler {
    let log: ProcessLog
    let label: String
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      var all = metadata
      if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
      if let own = event.metadata { all.merge(own) { $1 } }
      if let error = event.error, all[LogKeys.error] == nil { all[LogKeys.error] = "\(ErrorWords.text(error))" }
      log.take(event, at: event.level, label: label, metadata: all)
    }
  }
}
