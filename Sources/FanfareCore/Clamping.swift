/// Arithmetic on numbers from outside: from a record, a request, a row, an answer of a push service, or a metric.
///
/// The operators `+`, `-` and `*` end the process when a result does not fit, and so does `Int(_:)` of a number beyond
/// its range or of NaN. These functions return the nearest value of the type instead. `deploy/lint` finds the bare
/// conversions; sums of numbers from outside have to be found by reading.
extension FixedWidthInteger {
  /// The number without its fraction, or the nearest value of the type; 0 for NaN.
  @inlinable package init(clamping number: Double) {
    guard !number.isNaN else {
      self = 0
      return
    }
    self = Self(exactly: number.rounded(.towardZero)) ?? (number < 0 ? .min : .max)
  }

  /// This number plus `other`, or the nearest value of the type.
  @inlinable package func addingClamped(_ other: Self) -> Self {
    let (sum, isOutside) = addingReportingOverflow(other)
    return isOutside ? (other < 0 ? .min : .max) : sum
  }

  /// This number minus `other`, or the nearest value of the type.
  @inlinable package func subtractingClamped(_ other: Self) -> Self {
    let (difference, isOutside) = subtractingReportingOverflow(other)
    return isOutside ? (other < 0 ? .max : .min) : difference
  }

  /// This number times `other`, or the nearest value of the type.
  @inlinable package func multipliedClamped(by other: Self) -> Self {
    let (product, isOutside) = multipliedReportingOverflow(by: other)
    return isOutside ? ((self < 0) == (other < 0) ? .max : .min) : product
  }

  /// Adds `other`, or sets the nearest value of the type.
  @inlinable package mutating func addClamped(_ other: Self) { self = addingClamped(other) }
}

extension Sequence where Element: FixedWidthInteger {
  /// The sum of the elements, each step clamped to the type.
  @inlinable package func clampedSum() -> Element { reduce(0) { $0.addingClamped($1) } }
}
