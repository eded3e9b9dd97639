/// Where a record came from, in a form that knows whether this worker still owns the place.
package struct Origin: Hashable, Sendable {
  /// The partition's place in the `PartitionLedger`.
  let slot: Int32
  /// Which assignment of it: a later one of the same partition is somebody else's work.
  let epoch: UInt32
  /// The record's number in the assignment's `OffsetTracker`.
  let sequence: Int64
}
