import RDKafka
import Support
import Testing

@testable import Worker

/// Whether the metadata of a commit is believed.
struct CommitMetadataTests {
  private static let partition = TopicPartition(topic: "fanfare.sends", partition: 0)

  private func record(_ offset: Int64, at timestamp: Int64? = nil, epoch: Int32 = -1) -> ConsumedRecord {
    ConsumedRecord(
      topic: Self.partition.topic, partition: Self.partition.partition, offset: offset,
      timestamp: timestamp ?? 1_000 + offset, key: nil, value: [], leaderEpoch: epoch)
  }

  /// An owner in `cluster` that takes over `committed`.
  private func owner(of committed: PartitionOffset?, cluster: String? = "main") -> PartitionOffsets {
    var offsets = PartitionOffsets()
    offsets.cluster = cluster
    offsets.assign(Self.partition)
    if let committed { offsets.resume(committed) }
    return offsets
  }

  /// What an owner commits that has taken the offsets 10 to 19 and settled 12, 13 and 17.
  private func committed(in cluster: String? = "main", epoch: Int32 = -1, limit: Int = 3_500) throws -> PartitionOffset
  {
    var offsets = owner(of: nil, cluster: cluster)
    let origins = (Int64(10)..<20).compactMap { offsets.begin(record($0, epoch: epoch)) }
    for index in [2, 3, 7] { offsets.settle(origins[index]) }
    return try #require(offsets.takeChanged(metadataLimit: limit).first)
  }

  /// The offsets of the records that this owner takes.
  private func taken(_ offsets: inout PartitionOffsets, _ records: [ConsumedRecord]) -> [Int64] {
    records.filter { offsets.begin($0) != nil }.map(\.offset)
  }

  private let rest: [Int64] = [10, 11, 14, 15, 16, 18, 19]

  @Test func textIsStableBetweenVersions() throws {
    let lines = [
      try committed(), try committed(in: nil), try committed(epoch: 7), try committed(limit: 27),
      try committed(limit: 26),
      try committed(in: "spaces are no id"), try committed(in: "lkc-:x"),
    ].map { "\($0.offset) \($0.metadata ?? "-")" }
    try GoldenFile("commits2.txt", test: #filePath.replacing("/Intake/", with: "/")).expect(lines)
  }

  @Test func ownLogIsResumed() throws {
    for epoch in [Int32(-1), 7] {
      var next = owner(of: try committed(epoch: epoch))
      #expect(taken(&next, (Int64(10)..<20).map { record($0, epoch: epoch) }) == rest)
      #expect(next.takeSkipped() == 3)
    }
  }

  @Test func translatedOffsetSkipsNothing() throws {
    var mirrored = try committed()
    mirrored.offset = 4
    var next = owner(of: mirrored)
    #expect(taken(&next, (Int64(4)..<20).map { record($0) }) == Array(4..<20))
  }

  @Test func otherClusterSkipsNothing() throws {
    for cluster in ["mirror", nil] {
      var next = owner(of: try committed(), cluster: cluster)
      #expect(taken(&next, (Int64(10)..<20).map { record($0) }) == Array(10..<20))
    }
  }

  @Test func rewrittenEndOfLogSkipsNothingOfIt() throws {
    // The log lost its records from 13 on; younger ones stand there.
    var next = owner(of: try committed())
    let records = (Int64(10)..<20).map { record($0, at: $0 < 13 ? nil : 5_000) }
    #expect(taken(&next, records) == [10, 11] + Array(13..<20))
    // The clock of their producer is behind, but the leader is another one.
    next = owner(of: try committed(epoch: 7))
    let others = (Int64(10)..<20).map { record($0, at: 900, epoch: $0 < 13 ? 7 : 8) }
    #expect(taken(&next, others) == [10, 11] + Array(13..<20))
  }

  /// The last owner settled everything that it had taken, while the group took no commits: its last position has no
  /// metadata, and goes beyond the records that those of the committed one cover.
  @Test func keptPositionCoversRecordsAfterCommittedRuns() throws {
    var next = owner(of: try committed())
    next.learn(PartitionOffset(partition: Self.partition, offset: 30))
    #expect(taken(&next, (Int64(10)..<32).map { record($0) }) == [30, 31])
  }

  /// What an owner keeps that has settled everything below 30, while the group takes no commits.
  private func kept() throws -> PartitionOffset {
    var offsets = owner(of: PartitionOffset(partition: Self.partition, offset: 10))
    for offset in Int64(10)..<30 {
      if let origin = offsets.begin(record(offset)) { offsets.settle(origin) }
    }
    return try #require(offsets.takeChanged(metadataLimit: 3_500, isWitnessed: true).first)
  }

  @Test func keptPositionOutlivesSeveralOwners() throws {
    var second = owner(of: PartitionOffset(partition: Self.partition, offset: 10))
    second.learn(try kept())
    // It leaves before it has read to the kept position.
    #expect(taken(&second, (Int64(10)..<15).map { record($0) }) == [])
    let left = second.takeChanged(metadataLimit: 3_500).first
    #expect(left?.offset == 15)
    var third = owner(of: left)
    #expect(taken(&third, (Int64(15)..<32).map { record($0) }) == [30, 31])
  }

  @Test func keptPositionSkipsNothingOfARewrittenEnd() throws {
    var next = owner(of: PartitionOffset(partition: Self.partition, offset: 10))
    next.learn(try kept())
    let records = (Int64(10)..<20).map { record($0, at: $0 < 13 ? nil : 5_000) }
    #expect(taken(&next, records) == Array(13..<20))
  }

  @Test func keptRunsHaveTheirOwnWitness() throws {
    var next = owner(of: PartitionOffset(partition: Self.partition, offset: 10))
    next.learn(try committed())
    // The log lost its records from 13 on; younger ones stand there.
    let records = (Int64(10)..<20).map { record($0, at: $0 < 13 ? nil : 5_000) }
    #expect(taken(&next, records) == [10, 11] + Array(13..<20))
  }

  @Test func witnessIsOfPresentLog() throws {
    // The topic is created again after records of a later time and leader epoch.
    var offsets = owner(of: nil)
    for offset in Int64(10)..<20 { _ = offsets.begin(record(offset, at: 9_000, epoch: 7)) }
    let origins = (Int64(0)..<3).compactMap { offsets.begin(record($0, epoch: 0)) }
    offsets.settle(try #require(origins.last))
    #expect(offsets.takeChanged(metadataLimit: 3_500).first?.metadata?.hasPrefix("settled2:main:0:1002:0:") == true)
  }

  @Test func witnessOutlivesSeveralOwners() throws {
    // The second owner takes only the first record before it leaves.
    var second = owner(of: try committed())
    let first = second.begin(record(10))
    if let first { second.settle(first) }
    let left = second.takeChanged(metadataLimit: 3_500).first
    #expect(left?.offset == 11)
    var third = owner(of: left)
    #expect(taken(&third, (Int64(11)..<20).map { record($0) }) == Array(rest.dropFirst()))
  }

  @Test(arguments: [
    "", "CB", "settled1:CB", "settled2:", "settled2:main", "settled2:main:10:1019:-1", "settled2:main:10:1019:-1:",
    "settled2:main:10:1019:x:CB",
    "settled2:main:10::-1:CB", "settled2:main:+10:1019:-1:CB", "settled2:main:10:1019:-1:C:B",
    "settled2::10:1019:-1:CB",
    "settled3:main:10:1019:-1:CB", "settled2:main:10:1019:-1:" + String(repeating: "BB", count: 10_000),
  ])
  func foreignTextIsIgnored(text: String) {
    #expect(CommitMetadata(text, at: 10, cluster: "main").settled.isEmpty)
  }
}
