/// Why the demo cannot be shown to its end.
struct DemoError: Error, CustomStringConvertible {
  let description: String

  /// An error with the reason.
  init(_ description: String) { self.description = description }
}
