import Synchronization

/// A statement that each connection prepares once, when it first runs it. To be held in a static constant: each one
/// made is another one for every connection to remember.
package struct PreparedStatement: Sendable {
  /// What it says; parameters are `$1`, `$2` …, and their types follow from the ``Parameter`` values of the first use.
  package let sql: String
  /// Tells it from the others of this process.
  let number: Int

  private static let counter = Atomic(0)

  /// A statement.
  package init(_ sql: String) {
    self.sql = sql
    number = Self.counter.wrappingAdd(1, ordering: .relaxed).newValue
  }
}
