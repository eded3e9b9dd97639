import Glibc

/// The size of the terminal on standard output.
enum TerminalSize {
  /// The columns of the terminal; nil if standard output is none.
  static var columns: Int? {
    var size = winsize()
    guard isatty(STDOUT_FILENO) == 1, unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0
    else { return nil }
    return Int(size.ws_col)
  }
}
