import FanfareCore
import Foundation
import Synchronization

/// Unbuffered output for a user or a script. Logs also go to standard error, but through the logger.
package enum Console {
  /// The first error of standard output.
  private static let failure = Mutex<String?>(nil)

  /// The reason why standard output is incomplete; nil if it is complete.
  ///
  /// Never contains the output itself. A closed pipe is not a failure: its reader has ended.
  package static var outputFailure: String? { failure.withLock { $0 } }

  /// Writes text and a line end to standard output. Control characters are escaped, see ``Printable``.
  package static func print(_ line: String = "") {
    write(Printable.lines(line) + "\n", to: .standardOutput)
  }

  /// Writes JSON text to standard output; control characters become JSON's escapes.
  package static func print(jsonText: String) {
    write(Printable.json(jsonText) + "\n", to: .standardOutput)
  }

  /// Writes a value as one line of JSON to standard output.
  package static func print(json value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    print(jsonText: String(decoding: try encoder.encode(value), as: UTF8.self))
  }

  /// Writes text and a line end to standard error. Control characters are escaped, see ``Printable``.
  package static func error(_ line: String) {
    write(Printable.lines(line) + "\n", to: .standardError)
  }

  /// Replaces the current line of the terminal on standard output; truncated to its width.
  package static func overwrite(_ text: String) {
    write(overwriting(text), to: .standardOutput)
  }

  /// The control sequences that replace a terminal's current line.
  ///
  /// Line wrapping is off, because only the last wrapped line could be replaced later.
  package static func overwriting(_ text: String) -> String { "\r\u{1B}[K\u{1B}[?7l" + text + "\u{1B}[?7h" }

  /// Whether standard output is a terminal.
  package static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Replaces the current line of the terminal on standard error; truncated to its width.
  package static func overwriteError(_ text: String) {
    write(overwriting(text), to: .standardError)
  }

  /// Whether standard error is a terminal.
  package static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  private static func write(_ text: String, to handle: FileHandle) {
    do {
      try handle.write(contentsOf: Data(text.utf8))
    } catch {
      // A failure of standard error cannot be reported anywhere.
      guard handle.fileDescriptor == STDOUT_FILENO else { return }
      let error = error as NSError
      let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
      // The pipe is closed: its reader has ended and needs no report.
      guard cause.domain != NSPOSIXErrorDomain || cause.code != Int(EPIPE) else { return }
      let reason = cause.localizedDescription
      failure.withLock { $0 = $0 ?? reason }
    }
  }
}

extension Double {
  /// The number with at least three significant digits.
  package var text: String {
    if self >= 100 || self == rounded() { return "\(Int(clamping: rounded()))" }
    let tenths = (self * (self < 10 ? 100 : 10)).rounded() / (self < 10 ? 100 : 10)
    return "\(tenths)"
  }
}

extension Int {
  /// The number with its digits in groups of three.
  package var grouped: String {
    var digits = Array(String(self))
    for index in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: index) }
    return String(digits)
  }
}
