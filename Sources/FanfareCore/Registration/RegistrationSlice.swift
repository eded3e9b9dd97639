/// A contiguous range of registration ids.
/// Ids are uniformly distributed, so equal slices hold about as many devices.
package struct RegistrationSlice: Hashable, Sendable {
  /// The lowest id in the slice.
  package let first: RegistrationID
  /// The highest id in the slice; not below `first`.
  package let last: RegistrationID

  /// The slice from `first` to `last`, both included. Traps if `last` is below `first`.
  package init(first: RegistrationID, last: RegistrationID) {
    precondition(first <= last, "a slice has at least one id")
    self.first = first
    self.last = last
  }

  /// All ids.
  package static let whole = Self(first: RegistrationID(high: 0, low: 0), last: RegistrationID(high: .max, low: .max))

  /// Slice `number`, from 0, of `count` equal slices that cover all ids. `count` is 1 or more.
  package static func page(_ number: Int, of count: Int) -> Self {
    precondition(count > 0 && (0..<count).contains(number), "there is no such page")
    /// The first high word of a page: ⌊2⁶⁴ · number / count⌋.
    func start(_ number: Int) -> UInt64 { UInt64(count).dividingFullWidth((high: UInt64(number), low: 0)).quotient }
    let last = number + 1 == count ? UInt64.max : start(number + 1) - 1
    return Self(first: RegistrationID(high: start(number), low: 0), last: RegistrationID(high: last, low: .max))
  }

  /// Whether the id lies in the slice.
  package func contains(_ id: RegistrationID) -> Bool { first <= id && id <= last }

  /// The part of the slice after an id; nil if it is empty, the whole slice if the id is before it.
  package func after(_ id: RegistrationID) -> RegistrationSlice? {
    guard id < last else { return nil }
    guard id >= first else { return self }
    let next = id.number + 1
    return Self(
      first: RegistrationID(high: UInt64(truncatingIfNeeded: next >> 64), low: UInt64(truncatingIfNeeded: next)),
      last: last)
  }

  /// The share of the slice's ids that are not above the id: 0 for an id before the slice, 1 from
  /// its last id on.
  package func share(upTo id: RegistrationID) -> Double {
    guard id >= first else { return 0 }
    guard id < last else { return 1 }
    return (Double(id.number - first.number) + 1) / (Double(last.number - first.number) + 1)
  }
}

extension Identifier {
  /// The 16 bytes as one number.
  fileprivate var number: UInt128 { UInt128(high) << 64 | UInt128(low) }
}
