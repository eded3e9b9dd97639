import FanfareCore
import Foundation
import RDKafka
import Testing

@testable import Simulation

/// What the page that replays a run is given.
struct RecordingTests {
  private let recording = Recording(limit: 20)
  private let world: World
  private let send = SendID(high: 1, low: 1)

  init() {
    world = World(seed: 1, trace: Trace(recording: recording))
  }

  /// The data as the page reads it.
  private struct Data: Decodable {
    struct Kind: Decodable {
      let name: String
      let sentence: String
    }
    struct Events: Decodable {
      let time: [Int]
      let kind: [Int]
      let fields: [Int]
    }
    struct Log: Decodable {
      let partition: Int
      let second: [Int]
      let end: [Int]
      let committed: [Int]
    }
    struct Rate: Decodable {
      let counts: [Int]
    }
    let kinds: [Kind]
    let words: [String]
    let sends: [String]
    let pushes: [String]
    let events: Events
    let share: [String: Int]
    let logs: [Log]
    let rates: [Rate]
  }

  private func data() throws -> Data {
    try JSONDecoder().decode(Data.self, from: Foundation.Data(recording.json { _ in }))
  }

  private func push(_ number: UInt64) -> PushID { PushID(high: 1, low: number) }

  @Test func eventsAreColumnsWithWordsAndIdsListedOnce() throws {
    world.note(.posted(send, to: .user("bob")))
    world.run(until: .seconds(2))
    world.note(.trouble("worker1", "process", "is dead"))
    world.note(.accepted(send))
    let data = try data()
    #expect(data.events.kind.map { data.kinds[$0].name } == ["posted", "trouble", "accepted"])
    #expect(data.events.time == [0, 2_000_000, 0])
    #expect(data.sends == ["\(send)"])
    let fields = data.events.kind.map { data.kinds[$0].sentence.split(separator: "{").count }
    #expect(fields == [2, 3, 1] && data.events.fields.count == 6)
    #expect(data.words == ["user bob", "worker1", "process", "is dead"])
  }

  @Test func ofManyPushesASampleIsKeptAndThoseThatViolationsName() throws {
    for number in UInt64(1)..<100 { world.note(.pushed(push(number), of: SendID(high: 2, low: 1), by: "worker1")) }
    world.note(.violation("\(push(99)) is lost"))
    let data = try data()
    #expect(data.share == ["sends": 1, "pushes": 8, "commits": 1])
    #expect(data.pushes.count == 13 && data.pushes.contains("\(push(99))"))
    #expect(data.rates.map(\.counts) == [[99]])
  }

  @Test func pushesOfASendThatAViolationNamesAreKept() throws {
    for number in UInt64(1)..<100 {
      world.note(.pushed(push(number), of: number < 10 ? send : SendID(high: 2, low: 1), by: "w"))
    }
    world.note(.violation("\(send) has no end"))
    let pushes = try data().pushes
    #expect((UInt64(1)..<10).allSatisfy { pushes.contains("\(push($0))") } && pushes.count < 30)
  }

  @Test func logsHaveTheirEndAndTheirCommittedPosition() throws {
    let partition = TopicPartition(topic: "t.sends", partition: 3)
    world.note(.carried(partition, 0, send))
    world.note(.carried(partition, 1, send))
    world.run(until: .seconds(2))
    world.note(.committed("g", PartitionOffset(partition: partition, offset: 1)))
    let data = try data()
    #expect(data.logs.map { data.words[$0.partition] } == ["t.sends[3]"])
    #expect(data.logs[0].second == [0, 2] && data.logs[0].end == [2, 2] && data.logs[0].committed == [0, 1])
  }

  @Test func linesOfTextSayTheSame() {
    var lines: [String] = []
    let trace = Trace { lines.append($0) }
    trace.note(1_500_000, .pushed(push(7), of: send, by: "worker1"))
    let partition = TopicPartition(topic: "t", partition: 1)
    trace.note(2_000_000, .committed("g", PartitionOffset(partition: partition, offset: 4)))
    #expect(lines == ["1.500000 worker1 pushes \(push(7)) of \(send)", "2.000000 g commits t[1] 4 "])
  }
}
