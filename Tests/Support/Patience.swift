/// The bounds of tests on what takes real time: a machine ten times slower than usual must stay within them.
package enum Patience {
  /// How long a test waits for something that must happen.
  package static let event: Duration = .seconds(600)
  /// The deadline of a request that must be answered.
  package static let answer: Duration = .seconds(300)
  /// The deadline of a request that nothing answers. What comes before it on the connection must have happened already.
  package static let silence: Duration = .seconds(1)
}
