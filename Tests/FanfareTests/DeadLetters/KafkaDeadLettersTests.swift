import EmbeddedKafka
import FanfareCore
import FrontEnd
import RDKafka
import Support
import Synchronization
import Testing

@testable import Roles

/// Pages of dead letters, and redrives of the front end, over Kafka.
@Suite(.timeLimit(.minutes(1))) struct KafkaDeadLettersTests {
  private static let time = UnixTime(milliseconds: 1_795_248_000_000)

  /// Produces letters number 0 to `count` - 1, one a second, to two partitions in turn, three to the first and one to
  /// the second; every fifth has another reason.
  private func withLetters(
    _ count: Int, _ body: (KafkaDeadLetters, KafkaSettings, TestKafka) async throws -> Void
  ) async throws {
    let kafka = try TestKafka.embedded()
    let settings = try Settings.load(
      file: nil, environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrapServers]
    ).kafka
    try #require(kafka.cluster).createTopics(settings.specifications(replicationFactor: 1))
    try await kafka.withProducer { producer in
      let records = (0..<count).map { number in
        let letter = DeadLetter(
          reason: number % 5 == 0 ? .tooLarge : .unknownHub, detail: "\(number)",
          origin: DeadLetter.Origin(topic: settings.topics.sends, partition: 0, offset: Int64(number)),
          at: Self.time + .seconds(number), key: nil, value: Array("value \(number)".utf8))
        return ProducerRecord(
          topic: settings.topics.deadLetter, partition: number % 4 == 3 ? 1 : 0, key: nil, value: letter.encoded())
      }
      for result in await producer.send(records) { _ = try result.get() }
    }
    try await body(KafkaDeadLetters(settings, logger: TestKafka.quietLogger), settings, kafka)
  }

  @Test func pagesHaveEveryLetterOnceNewestFirst() async throws {
    try await withLetters(40) { store, _, _ in
      var query = DeadLetterQuery(isVisible: { $0.detail != "39" }, limit: 7)
      var numbers: [String] = []
      var pages = 0
      repeat {
        let page = try await store.list(query)
        numbers += page.letters.map(\.detail)
        if pages == 0 { #expect(page.countsAll && page.counts == [.tooLarge: 8, .unknownHub: 31]) }
        query.before = page.next
        pages += 1
      } while query.before != nil && pages < 10
      #expect(numbers == (0..<39).reversed().map(String.init))
      #expect(pages == 6)
      let filtered = try await store.list(DeadLetterQuery(isVisible: { _ in true }, reason: .tooLarge))
      #expect(filtered.letters.map(\.detail) == (0..<8).reversed().map { "\($0 * 5)" } && filtered.next == nil)
    }
  }

  @Test func pageThatMayExamineFewRecordsContinuesWhereItEnded() async throws {
    try await withLetters(40) { _, settings, _ in
      let box = try DeadLetterBox(settings, patience: .ends(at: .now + .seconds(30)), logger: TestKafka.quietLogger)
      var query = DeadLetterQuery(isVisible: { _ in true })
      var (numbers, pages): ([String], Int) = ([], 0)
      repeat {
        let page = try await box.page(query, records: 8)
        #expect(page.countsAll == (page.counts.values.reduce(0, +) < 8) || page.next == nil)
        numbers += page.letters.map(\.detail)
        query.before = page.next
        pages += 1
      } while query.before != nil && pages < 30
      #expect(numbers == (0..<40).reversed().map(String.init))
      #expect(pages > 4)
    }
  }

  @Test func letterIsReadAtItsPlaceAlone() async throws {
    try await withLetters(8) { store, _, _ in
      for (partition, offset, detail) in [(1, 1, "7"), (1, 2, nil), (99, 0, nil)] as [(Int32, Int64, String?)] {
        let letter = try await store.letter(at: LogPlace(partition: partition, offset: offset))
        #expect(letter?.detail == detail)
      }
    }
  }

  @Test func selectedLettersAreRedrivenOnce() async throws {
    try await withLetters(8) { store, settings, kafka in
      // Numbers 0, 7 and none.
      let places = [(0, 0), (1, 1), (1, 9)].map { LogPlace(partition: Int32($0.0), offset: $0.1) }
      func redrive(_ selection: RedriveOrder.Selection, isDryRun: Bool = false) async throws -> RedriveOutcome {
        try await store.redrive(
          RedriveOrder(selection: selection, isDryRun: isDryRun, isRepeated: false, isVisible: { $0.detail != "5" }))
      }
      let dry = try await redrive(.places(Set(places)), isDryRun: true)
      #expect(dry.redriven == 2 && dry.found == Set(places.prefix(2)))
      #expect(try await redrive(.places(Set(places))).redriven == 2)
      let again = try await redrive(.places(Set(places)))
      #expect(again.redriven == 0 && again.redrivenBefore == 2)
      // 0 was redriven before, and 5 is not visible.
      let reason = try await redrive(.reason(.tooLarge))
      #expect(reason.redriven == 0 && reason.redrivenBefore == 1 && reason.next == nil)
      #expect(try await redrive(.reason(.unknownHub)).redriven == 5)
      let values = try await Self.redriven(settings, kafka)
      #expect(values.sorted() == [0, 1, 2, 3, 4, 6, 7].map { "value \($0)" })
    }
  }

  @Test func redriveByReasonStopsAtItsLimit() async throws {
    try await withLetters(RedriveOrder.maximumCount * 5 / 4 + 10) { store, _, _ in
      let order = RedriveOrder(
        selection: .reason(.unknownHub), isDryRun: false, isRepeated: false, isVisible: { _ in true })
      let first = try await store.redrive(order)
      #expect(first.redriven == RedriveOrder.maximumCount && first.next != nil)
      let rest = try await store.redrive(order)
      #expect(rest.redriven == 8 && rest.redrivenBefore == RedriveOrder.maximumCount && rest.next == nil)
    }
  }

  @Test func repeatedRedriveContinuesAtItsCursorAndReachesEveryLetterOnce() async throws {
    try await withLetters(RedriveOrder.maximumCount * 5 / 4 + 10) { store, settings, kafka in
      var (counts, next): ([Int], DeadLetterPosition?) = ([], nil)
      repeat {
        let order = RedriveOrder(
          selection: .reason(.unknownHub), after: next, isDryRun: false, isRepeated: true, isVisible: { _ in true })
        let outcome = try await store.redrive(order)
        counts.append(outcome.redriven)
        next = outcome.next
      } while next != nil && counts.count < 5
      #expect(counts == [RedriveOrder.maximumCount, 8])
      let values = try await Self.redriven(settings, kafka)
      #expect(values.count == RedriveOrder.maximumCount + 8 && Set(values).count == values.count)
    }
  }

  @Test func interruptedRedriveSaysWhereItContinues() async throws {
    // 160 of them have the reason: two batches of 64 and a rest.
    try await withLetters(200) { store, settings, kafka in
      let cluster = try #require(kafka.cluster)
      let seen = Mutex(0)
      func redrive(after next: DeadLetterPosition?) async throws(DeadLetterError) -> RedriveOutcome {
        try await store.redrive(
          RedriveOrder(selection: .reason(.unknownHub), after: next, isDryRun: false, isRepeated: true) { _ in
            let number = seen.withLock { seen in
              seen += 1
              return seen
            }
            // Each letter is seen twice; at the 70th record Kafka has acknowledged the first batch.
            if number == 160 + 70 {
              do {
                try cluster.inject(Array(repeating: .topicAuthorizationFailed, count: 20), into: .produce)
              } catch { Issue.record(error) }
            }
            return true
          })
      }
      let error = await #expect(throws: DeadLetterError.self) { try await redrive(after: nil) }
      guard case .interrupted(_, let next?)? = error else {
        Issue.record("\(String(describing: error)) does not say where to continue")
        return
      }
      try cluster.clearFaults(of: .produce)
      #expect(try await Self.redriven(settings, kafka).count == 64)
      #expect(try await redrive(after: next).redriven == 96)
      let values = try await Self.redriven(settings, kafka)
      #expect(values.count == 160 && Set(values).count == 160)
    }
  }

  /// The values on the sends topic.
  private static func redriven(_ settings: KafkaSettings, _ kafka: TestKafka) async throws -> [String] {
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    let scan = try reader.scan(try await reader.spans(of: [settings.topics.sends]))
    var values: [String] = []
    while let records = try await scan.next() { values += records.map { String(decoding: $0.value, as: UTF8.self) } }
    return values
  }

  @Test func readsOfOneCallerWaitForOneAnother() async throws {
    try await withLetters(8) { store, _, _ in
      try await ReadCaller.$current.withValue(ReadCaller(hub: .default, user: "operator")) {
        try await withThrowingTaskGroup(of: Int.self) { group in
          for _ in 0..<6 {
            group.addTask { try await store.list(DeadLetterQuery(isVisible: { _ in true })).letters.count }
          }
          for try await count in group { #expect(count == 8) }
        }
      }
    }
  }

  @Test func withoutTimeTheTopicIsTooMuch() async throws {
    try await withLetters(8) { _, settings, _ in
      let store = KafkaDeadLetters(settings, timeLimit: .zero, logger: TestKafka.quietLogger)
      await #expect(throws: DeadLetterError.tooMuch) { try await store.list(DeadLetterQuery(isVisible: { _ in true })) }
    }
  }
}
