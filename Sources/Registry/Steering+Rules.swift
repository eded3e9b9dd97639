import FanfareCore

/// What every store knows of steering.
extension Steering {
  /// Reads what was stored. Throws where no release has written it.
  init(course: String, cause: String) throws {
    guard let course = Course(rawValue: course), let cause = Cause(rawValue: cause) else {
      throw RegistryError(.unavailable, "the registry holds a course of a broadcast that this release does not know")
    }
    self.init(course, because: cause)
  }

  /// Whether this gives way to what is wanted now: what was cancelled stays cancelled, and failures change nothing but
  /// what runs.
  func accepts(_ wanted: Steering) -> Bool {
    course != .cancelled && (wanted.cause != .failures || course == .running)
  }
}
