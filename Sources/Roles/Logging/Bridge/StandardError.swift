import Glibc

/// Standard error without a buffer.
enum StandardError {
  /// Writes the bytes with one call where the kernel takes them at once, so that the lines of threads and processes
  /// that share a file are not mixed. What cannot be written is dropped: there is no place to report it.
  static func write(_ bytes: [UInt8]) {
    unsafe bytes.withUnsafeBytes { buffer in
      var rest = unsafe buffer[...]
      while let base = unsafe UnsafeRawBufferPointer(rebasing: rest).baseAddress {
        let written = unsafe Glibc.write(STDERR_FILENO, base, rest.count)
        if written > 0 { unsafe rest = unsafe rest.dropFirst(written) } else if errno != EINTR { return }
        if unsafe rest.isEmpty { return }
      }
    }
  }
}
