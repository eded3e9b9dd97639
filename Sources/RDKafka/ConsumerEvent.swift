/// What a ``Consumer`` has to say, in order: records of a partition only come between its `assigned` and its `revoked`
/// or `lost`.
package enum ConsumerEvent: Sendable {
  /// Records, in order within each partition; at most as many as credit was granted.
  case records([ConsumedRecord])
  /// The group gives these partitions to this member. Reading starts when the rebalance is completed.
  case assigned([TopicPartition], Rebalance)
  /// The group wants these partitions back. No further record of them comes. Settle or give up what is in flight, store
  /// the offsets, then complete the rebalance: only then may another member read them.
  case revoked([TopicPartition], Rebalance)
  /// These partitions belong to somebody else already (the session expired). Drop what is in flight; nothing can be
  /// committed.
  case lost([TopicPartition], Rebalance)
  /// Something is wrong. Unless `isFatal`, the consumer goes on and tries again by itself; after a fatal one the stream
  /// ends. The same error is reported at most every ten seconds.
  case failed(RDKafkaError)
}
