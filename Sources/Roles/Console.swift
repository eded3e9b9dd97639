import Foundation
import Synchronization

/// What a person or a script in front of the terminal reads: unbuffered. Logs go to standard error, too, but through
/// the logger.
package enum Console {
  /// What went wrong with standard output first.
  private static let failure = Mutex<String?>(nil)

  /// Why standard output is not whole, where something could not be written to it; nil where it is. Never what was to
  /// be written. A reader that has gone away has had enough, and is no failure.
  package static var outputFailure: String? { failure.withLock { $0 } }

  /// Writes a line to standard output.
  package static func print(_ line: String = "") {
    write(line + "\n", to: .standardOutput)
  }

  /// Writes a value as one line of JSON to standard output.
  package static func print(json value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    print(String(decoding: try encoder.encode(value), as: UTF8.self))
  }

  /// Writes a line to standard error.
  package static func error(_ line: String) {
    write(line + "\n", to: .standardError)
  }

  /// Writes text over the present line of a terminal, as much of it as fits.
  package static func overwrite(_ text: String) {
    write(overwriting(text), to: .standardOutput)
  }

  /// What makes a terminal show the text instead of its present line. It is not to wrap: of what wraps, only the last
  /// line could be written over.
  package static func overwriting(_ text: String) -> String { "\r\u{1B}[K\u{1B}[?7l" + text + "\u{1B}[?7h" }

  /// Whether standard output is a terminal that a person watches.
  package static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Writes text over the present line of the terminal that standard error is, as much of it as fits.
  package static func overwriteError(_ text: String) {
    write(overwriting(text), to: .standardError)
  }

  /// Whether standard error is a terminal that a person watches.
  package static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  private static func write(_ text: String, to handle: FileHandle) {
    do {
      try handle.write(contentsOf: Data(text.utf8))
    } catch {
      // There is no better place to tell that standard error is gone.
      guard handle.fileDescriptor == STDOUT_FILENO else { return }
      let error = error as NSError
      let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
      // The reader has gone away (a closed pipe): nobody is left to be told.
      guard cause.domain != NSPOSIXErrorDomain || cause.code != Int(EPIPE) else { return }
      let reason = cause.localizedDescription
      failure.withLock { $0 = $0 ?? reason }
    }
  }
}

extension Double {
  /// The number with at least three significant digits.
  package var text: String {
    if self >= 100 || self == rounded() { return "\(Int(rounded()))" }
    let tenths = (self * (self < 10 ? 100 : 10)).rounded() / (self < 10 ? 100 : 10)
    return "\(tenths)"
  }
}
