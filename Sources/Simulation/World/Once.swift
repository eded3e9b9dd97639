/// Lets one of several events pass: an answer or its timeout, for example.
///
/// `@unchecked Sendable`: see `World`.
final class Once: @unchecked Sendable {
  private var hasPassed = false

  func pass() -> Bool {
    defer { hasPassed = true }
    return !hasPassed
  }
}
