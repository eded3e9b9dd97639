import Glibc

/// The limit of open files of a process.
enum OpenFiles {
  /// The soft limit, which counts; nil if the system does not tell.
  static var limit: Int? {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
    return Int(clamping: limit.rlim_cur)
  }
}
