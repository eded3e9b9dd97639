import FanfareCore
import RDKafka
import Support
import Testing

@testable import fanfare

@Suite(.timeLimit(.minutes(1))) struct StatusBeginningsTests {
  private static let until = UnixTime(milliseconds: 1000)

  /// What one quiet partition has lost says nothing of the others.
  @Test func aPartitionExcusesOnlySendsWhoseStatusMayHaveBeenThere() {
    let send = SendID(high: 1, low: 1)
    let byKey = StatusBeginnings.hash(Array(send.description.utf8)) % 16
    for partition in Int32(0)..<16 {
      let beginnings = StatusBeginnings(partitions: 16, deletedUntil: [partition: Self.until])
      for origin in Int32(0)..<64 {
        let isExcused = beginnings.mayMiss(send, in: origin, acceptedAt: Self.until)
        #expect(isExcused == (partition == origin % 16 || partition == byKey))
        #expect(!beginnings.mayMiss(send, in: origin, acceptedAt: Self.until + .milliseconds(1)))
      }
    }
  }

  /// As producers place keys of every length.
  @Test func keysLieWhereTheyAreLookedFor() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 16)
    let keys = (1...40).map { length in (0..<length).map { UInt8(truncatingIfNeeded: length &* 37 &+ $0 &* 101) } }
    let records = keys.map { ProducerRecord(topic: topic, key: $0, value: [1]) }
    let results = try await kafka.withProducer { await $0.send(records) }
    for (key, result) in zip(keys, results) {
      let partition = try result.get().partition
      #expect(StatusBeginnings.hash(key) % 16 == partition)
    }
  }
}
