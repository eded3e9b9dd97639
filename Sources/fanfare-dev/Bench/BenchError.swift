/// What makes a measurement worthless.
struct BenchError: Error, CustomStringConvertible {
  let description: String

  /// An error with the reason.
  init(_ description: String) { self.description = description }
}
