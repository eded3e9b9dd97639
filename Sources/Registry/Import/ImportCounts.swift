/// What became of lines.
package struct ImportCounts: Hashable, Sendable {
  /// All of them, empty ones included.
  package var lines = 0
  /// Registrations that were not there.
  package var imported = 0
  /// Registrations that took the place of others.
  package var replaced = 0
  /// Registrations that were there already, exactly so.
  package var unchanged = 0
  /// Registrations that the registry has heard of since.
  package var outdated = 0
  /// Lines that are no registrations, and registrations that may not be taken.
  package var skipped = 0

  package init() {}

  /// The lines that hold something.
  package var read: Int { imported + replaced + unchanged + outdated + skipped }

  /// Adds what became of other lines.
  package static func += (left: inout Self, right: Self) {
    for field in fields { left[keyPath: field] += right[keyPath: field] }
  }

  /// The numbers, in the order in which stores keep them.
  static var fields: [WritableKeyPath<Self, Int>] {
    [\.lines, \.imported, \.replaced, \.unchanged, \.outdated, \.skipped]
  }

  /// The columns of `fields`.
  static let columns = "lines, imported, replaced, unchanged, outdated, skipped"

  /// Reads what a store has kept.
  init(_ numbers: [Int64]) {
    for (field, number) in zip(Self.fields, numbers) { self[keyPath: field] = Int(number) }
  }
}
