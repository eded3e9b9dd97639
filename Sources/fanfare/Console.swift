import Foundation

/// What a person or a script in front of the terminal reads: unbuffered. Logs go to standard error, too, but through the logger.
enum Console {
  /// Writes a line to standard output.
  static func print(_ line: String = "") {
    write(line + "\n", to: .standardOutput)
  }

  /// Writes a value as one line of JSON to standard output.
  static func print(json value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    print(String(decoding: try encoder.encode(value), as: UTF8.self))
  }

  /// Writes a line to standard error.
  static func error(_ line: String) {
    write(line + "\n", to: .standardError)
  }

  /// Writes text over the present line of a terminal.
  static func overwrite(_ text: String) {
    write("\r\u{1B}[K" + text, to: .standardOutput)
  }

  /// Whether standard output is a terminal that a person watches.
  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Writes text over the present line of the terminal that standard error is.
  static func overwriteError(_ text: String) {
    write("\r\u{1B}[K" + text, to: .standardError)
  }

  /// Whether standard error is a terminal that a person watches.
  static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  private static func write(_ text: String, to handle: FileHandle) {
    do {
      try handle.write(contentsOf: Data(text.utf8))
    } catch {
      // The reader has gone away (a closed pipe): nobody is left to be told.
    }
  }
}
