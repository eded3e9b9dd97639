import Glibc

/// Starts the program again in its own process, with the same arguments and one more environment variable.
/// Returns only if that is impossible: the error number.
func restartProgram(with name: String, _ value: String) -> Int32 {
  guard unsafe setenv(name, value, 1) == 0 else { return errno }
  var arguments: [UnsafeMutablePointer<CChar>?] = unsafe CommandLine.arguments.map { unsafe strdup($0) }
  unsafe arguments.append(nil)
  // The copies of the arguments are leaked: the new program replaces the memory.
  _ = unsafe execv("/proc/self/exe", arguments)
  return errno
}
