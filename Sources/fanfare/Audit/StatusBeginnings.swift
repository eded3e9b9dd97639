import FanfareCore

/// Since when the status topic has every record that was ever written to it, partition by partition.
///
/// Right as long as the topic keeps its number of partitions: with more of them, statuses from before lie elsewhere than is looked here.
struct StatusBeginnings: Equatable {
  /// How many partitions the topic has.
  let partitions: Int32
  /// Those whose beginning the cluster has deleted: sends accepted until then may have had their status there.
  let deletedUntil: [Int32: UnixTime]

  /// Whether the status of a send, accepted then in that partition of the sends topic, may have been deleted.
  func mayMiss(_ send: SendID, in partition: Int32, acceptedAt time: UnixTime) -> Bool {
    // Statuses go where their send's partition says. Pages of broadcasts go by their key, and so does what a worker settles that has lost
    // the partition meanwhile.
    let places = [partition % partitions, Self.hash(Array(send.description.utf8)) % partitions]
    return places.contains { place in deletedUntil[place].map { time <= $0 } ?? false }
  }

  /// The number that Kafka's producers place a key by (murmur2), not negative.
  static func hash(_ key: [UInt8]) -> Int32 {
    let multiplier: UInt32 = 0x5bd1_e995
    var hash = 0x9747_b28c ^ UInt32(truncatingIfNeeded: key.count)
    func word(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) } }
    let tail = key.count & ~3
    for start in stride(from: 0, to: tail, by: 4) {
      var word = word(key[start..<start + 4]) &* multiplier
      word ^= word >> 24
      hash = hash &* multiplier ^ word &* multiplier
    }
    if tail < key.count { hash = (hash ^ word(key[tail...])) &* multiplier }
    hash = (hash ^ hash >> 13) &* multiplier
    hash ^= hash >> 15
    return Int32(hash & 0x7fff_ffff)
  }
}
