import Crypto
import EmbeddedKafka
import FanfareCore
import Foundation
import Logging
import NIOHTTP1
import RDKafka
import ServiceLifecycle
import Support
import Synchronization
import Testing

@testable import Hooks

/// Whole deliveries from a status topic to a TLS server.
@Suite(.timeLimit(.minutes(2))) struct HookDeliveryTests {
  private static let key = Data((0..<32).map { UInt8($0) })
  private let kafka: TestKafka
  private let topics: Topics
  private let certificates: TestCertificates

  init() async throws {
    kafka = try TestKafka.shared()
    topics = Topics(prefix: kafka.group())
    certificates = try TestCertificates()
    let topic = TopicSpecification(name: topics.status, partitions: 2)
    if let cluster = kafka.cluster {
      try cluster.createTopics([topic])
    } else {
      let administrator = try TopicAdministrator(client: kafka.client(), logger: TestKafka.quietLogger)
      _ = try await administrator.createTopics([topic])
    }
  }

  private func hook(_ url: String) throws -> HookConfiguration {
    var hook = HookConfiguration(name: "audit", url: try #require(HookURL(url)), hubs: [.default])
    hook.allowsPrivate = true
    hook.trustRoots = certificates.authorityPEM
    hook.backoff = Backoff(first: .milliseconds(1), limit: .milliseconds(5))
    return hook
  }

  /// Delivers while `body` runs, then stops in order.
  private func delivering(
    to hook: HookConfiguration, clock: any WallClock = ManualClock(), logger: Logger = TestKafka.quietLogger,
    _ body: (HookDelivery) async throws -> Void
  ) async throws {
    var consumer = hook.consumer(client: kafka.client("hook"), topics: topics)
    consumer.sessionTimeout = .seconds(kafka.cluster == nil ? 10 : 4)
    consumer.start = .earliest
    let secrets = try #require(WebhookSecrets("whsec_" + Self.key.base64EncodedString()))
    let delivery = try HookDelivery(
      hook, secrets: secrets, consumer: consumer, topics: topics, clock: clock, logger: logger)
    let services = ServiceGroup(services: [delivery], logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { tasks in
      tasks.addTask { try await services.run() }
      try await body(delivery)
      await services.triggerGracefulShutdown()
      try await tasks.waitForAll()
    }
  }

  private func produce(_ records: [StatusRecord], to partition: Int32 = 0) async throws {
    try await kafka.withProducer { producer in
      let records = records.map {
        ProducerRecord(topic: topics.status, partition: partition, key: nil, value: $0.encoded())
      }
      for result in await producer.send(records) { _ = try result.get() }
    }
  }

  private func records(_ count: Int) -> [StatusRecord] {
    (0..<count).map { _ in HookEventTests.record(.random(), devices: [HookEventTests.device(.delivered)]) }
  }

  /// The sends of a request's events, in order.
  private static func sends(_ request: Receiver.Request) throws -> [String] {
    let batch = try JSONSerialization.jsonObject(with: Data(request.body)) as? [[String: Any]]
    return try #require(batch).map { try #require($0["subject"] as? String) }
  }

  private static func names(_ records: [StatusRecord]) -> [String] { records.map(\.send.description) }

  @Test func eventsArriveInOrderInSignedBatches() async throws {
    let records = records(250)
    try await produce(records)
    let receiver = try await Receiver(certificates) { _, _ in Receiver.Answer(status: .noContent) }
    let clock = ManualClock()
    var arrived: [String] = []
    try await delivering(to: try hook(receiver.url), clock: clock) { delivery in
      for await request in receiver.requests {
        #expect(request.path == "/hook")
        #expect(request.headers["content-type"] == ["application/cloudevents-batch+json"])
        let id = try #require(request.headers["webhook-id"].first)
        let timestamp = try #require(request.headers["webhook-timestamp"].first)
        #expect(timestamp == "\(clock.now().milliseconds / 1000)")
        // Computed as a receiver does.
        let signed = Data("\(id).\(timestamp).".utf8) + Data(request.body)
        let code = HMAC<SHA256>.authenticationCode(for: signed, using: SymmetricKey(data: Self.key))
        #expect(request.headers["webhook-signature"] == ["v1," + Data(code).base64EncodedString()])
        let sends = try Self.sends(request)
        #expect(sends.count <= 100)
        arrived += sends
        if arrived.count >= records.count { break }
      }
      #expect(delivery.problem == nil)
    }
    #expect(arrived == Self.names(records))
    try await receiver.close()
  }

  @Test func failedRequestIsRepeatedWithTheSameID() async throws {
    let records = records(3)
    try await produce(records)
    let receiver = try await Receiver(certificates) { number, _ in
      switch number {
      case 1: Receiver.Answer(status: .internalServerError)
      case 2: Receiver.Answer(status: .serviceUnavailable, headers: ["retry-after": "0"])
      default: Receiver.Answer(status: .ok)
      }
    }
    let log = LogRecorder()
    try await delivering(to: try hook(receiver.url), logger: log.logger) { _ in
      var requests: [Receiver.Request] = []
      for await request in receiver.requests {
        requests.append(request)
        if requests.count == 3 { break }
      }
      #expect(Set(requests.compactMap { $0.headers["webhook-id"].first }).count == 1)
      let sends = try requests.map { try Self.sends($0) }
      #expect(sends == Array(repeating: Self.names(records), count: 3))
    }
    #expect(log.count(of: "Hook failed;") == 1 && log.count(of: "Hook receives events again") == 1)
    try await receiver.close()
  }

  @Test func orderlyRestartLosesAndRepeatsNothing() async throws {
    let receiver = try await Receiver(certificates) { _, _ in Receiver.Answer(status: .ok) }
    for records in [records(5), records(5)] {
      try await produce(records)
      try await delivering(to: try hook(receiver.url)) { _ in
        var arrived: [String] = []
        for await request in receiver.requests {
          arrived += try Self.sends(request)
          if arrived.count >= records.count { break }
        }
        #expect(arrived == Self.names(records))
      }
    }
    try await receiver.close()
  }

  @Test func refusedEventsArriveAfterARestart() async throws {
    let records = records(2)
    try await produce(records)
    let ill = try await Receiver(certificates) { _, _ in Receiver.Answer(status: .badGateway) }
    try await delivering(to: try hook(ill.url)) { _ in for await _ in ill.requests { break } }
    let well = try await Receiver(certificates) { _, _ in Receiver.Answer(status: .ok) }
    try await delivering(to: try hook(well.url)) { _ in
      var arrived: [String] = []
      for await request in well.requests {
        arrived += try Self.sends(request)
        if arrived.count >= records.count { break }
      }
      #expect(arrived == Self.names(records))
    }
    try await ill.close()
    try await well.close()
  }

  @Test func partitionWhoseEventsFailDelaysNoOther() async throws {
    let (ill, well) = (records(30), records(30))
    try await produce(ill, to: 0)
    let receiver = try await Receiver(certificates) { _, request in
      let isIll = request.contains(anyOf: ill)
      return Receiver.Answer(status: isIll ? .internalServerError : .ok)
    }
    var hook = try hook(receiver.url)
    (hook.windowRecords, hook.batchEvents) = (10, 5)
    let log = LogRecorder()
    try await delivering(to: hook, logger: log.logger) { delivery in
      // The second failure shows that the first partition is read and waits.
      var failures = 0
      for await _ in receiver.requests {
        failures += 1
        if failures == 2 { break }
      }
      try await produce(well, to: 1)
      var arrived: [String] = []
      for await request in receiver.requests where !request.contains(anyOf: ill) {
        arrived += try Self.sends(request)
        if arrived.count >= well.count { break }
      }
      #expect(arrived == Self.names(well))
      // The hook is not well because one partition is.
      #expect(delivery.problem?.contains("answered 500") == true)
    }
    #expect(log.count(of: "Hook failed;") == 1 && log.count(of: "Hook receives events again") == 0)
    try await receiver.close()
  }

  @Test func tooLargeRequestIsHalvedUntilOnlyTheEventAtFaultIsGivenUp() async throws {
    let records = records(8)
    try await produce(records)
    let receiver = try await Receiver(certificates) { _, request in
      Receiver.Answer(status: request.contains(anyOf: [records[2]]) ? .payloadTooLarge : .ok)
    }
    let log = LogRecorder()
    try await delivering(to: try hook(receiver.url), logger: log.logger) { delivery in
      var (arrived, refused): ([String], [Int]) = ([], [])
      for await request in receiver.requests {
        let sends = try Self.sends(request)
        if request.contains(anyOf: [records[2]]) { refused.append(sends.count) } else { arrived += sends }
        if arrived.count >= records.count - 1 || refused.count > 10 { break }
      }
      #expect(arrived == Self.names(records.enumerated().filter { $0.offset != 2 }.map(\.element)))
      // The first two of the halves arrive, and those after them are tried together and then alone.
      #expect(refused == [8, 4, 4, 2, 1])
      #expect(delivery.problem == nil)
    }
    #expect(log.count(of: "Hook refuses an event; it is given up") == 1)
    #expect(log.count(of: "Hook failed;") == 0)
    try await receiver.close()
  }

  @Test func eventThatIsRefusedForItselfIsRepeatedBeforeItIsGivenUp() async throws {
    let records = records(2)
    try await produce(records)
    let receiver = try await Receiver(certificates) { _, request in
      Receiver.Answer(status: request.contains(anyOf: [records[0]]) ? .unprocessableEntity : .ok)
    }
    let log = LogRecorder()
    var hook = try hook(receiver.url)
    hook.maximumRefusals = 3
    try await delivering(to: hook, logger: log.logger) { _ in
      var counts: [Int] = []
      for await request in receiver.requests {
        counts.append(try Self.sends(request).count)
        guard !request.contains(anyOf: [records[0]]) || counts.count > 10 else { continue }
        #expect(try Self.sends(request) == [records[1].send.description])
        break
      }
      #expect(counts == [2, 1, 1, 1, 1])
    }
    #expect(log.count(of: "Hook refuses an event; it is given up") == 1)
    #expect(log.count(of: "Hook failed;") == 1 && log.count(of: "Hook receives events again") == 1)
    try await receiver.close()
  }

  @Test func redirectIsNotFollowed() async throws {
    try await produce(records(1))
    let receiver = try await Receiver(certificates) { number, _ in
      guard number < 3 else { return Receiver.Answer(status: .ok) }
      return Receiver.Answer(status: .temporaryRedirect, headers: ["location": "/elsewhere"])
    }
    try await delivering(to: try hook(receiver.url)) { _ in
      var paths: [String] = []
      for await request in receiver.requests {
        paths.append(request.path)
        if paths.count == 3 { break }
      }
      #expect(paths == ["/hook", "/hook", "/hook"])
    }
    try await receiver.close()
  }

  @Test func privateAddressIsNeverConnected() async throws {
    try await produce(records(1))
    let count = Mutex(0)
    let receiver = try await Receiver(certificates) { _, _ in
      count.withLock { $0 += 1 }
      return Receiver.Answer(status: .ok)
    }
    var hook = try hook(receiver.url)
    hook.allowsPrivate = false
    let (failures, failure) = AsyncStream.makeStream(of: Void.self)
    let logger = Logger(label: "test") { _ in Signal(message: "Hook failed", continuation: failure) }
    try await delivering(to: hook, logger: logger) { delivery in
      for await _ in failures { break }
      #expect(delivery.problem?.contains("the receiver's address is not public; hook.audit.allowPrivate") == true)
    }
    #expect(count.withLock { $0 } == 0)
    try await receiver.close()
  }

  @Test func goneEndsTheDelivery() async throws {
    try await produce(records(1))
    let receiver = try await Receiver(certificates) { _, _ in Receiver.Answer(status: .gone) }
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    let logger = Logger(label: "test") { _ in Signal(message: "Hook answered 410", continuation: end) }
    try await delivering(to: try hook(receiver.url), logger: logger) { delivery in
      for await _ in ends { break }
      #expect(delivery.problem?.contains("410") == true)
    }
    try await receiver.close()
  }

  @Test func eventsThatBecameTooOldAreSkipped() async throws {
    let old = records(2)
    try await produce(old)
    let clock = ManualClock()
    let receiver = try await Receiver(certificates) { number, _ in
      guard number == 1 else { return Receiver.Answer(status: .ok) }
      clock.advance(by: .seconds(73 * 3600))
      return Receiver.Answer(status: .internalServerError)
    }
    let log = LogRecorder()
    try await delivering(to: try hook(receiver.url), clock: clock, logger: log.logger) { _ in
      for await _ in receiver.requests { break }
      let new = HookEventTests.record(.random(), at: clock.now())
      try await produce([new])
      for await request in receiver.requests {
        let sends = try Self.sends(request)
        #expect(sends == Self.names([new]))
        break
      }
    }
    #expect(log.count(of: "Hook failed for too long") == 1)
    try await receiver.close()
  }

  /// A log that signals a message.
  private struct Signal: LogHandler {
    let message: String
    let continuation: AsyncStream<Void>.Continuation
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      if "\(event.message)".hasPrefix(message) { continuation.yield() }
    }
  }
}

extension Receiver.Request {
  /// Whether the request has an event of one of the records.
  fileprivate func contains(anyOf records: [StatusRecord]) -> Bool {
    let text = String(decoding: body, as: UTF8.self)
    return records.contains { text.contains($0.send.description) }
  }
}
