import FanfareCore
import HTTP2
import PushServices
import RDKafka
import Synchronization
import Worker

/// Records that come when the benchmark says so.
final class MemorySource: RecordSource {
  let events: AsyncStream<ConsumerEvent>
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let nextOffset = Mutex<Int64>(0)
  private let awaited = Mutex<(offset: Int64, countdown: Countdown)?>(nil)

  init() {
    (events, continuation) = AsyncStream.makeStream()
  }

  /// Lets the worker have an event.
  func yield(_ event: ConsumerEvent) { continuation.yield(event) }

  /// The offset of the first of so many further records.
  func takeOffsets(_ count: Int) -> Int64 {
    nextOffset.withLock { offset in
      defer { offset += Int64(count) }
      return offset
    }
  }

  /// Counts down when the position reaches the offset.
  func expect(_ offset: Int64, _ countdown: Countdown) { awaited.withLock { $0 = (offset, countdown) } }

  func commit(_ offsets: [PartitionOffset]) async {
    let countdown = awaited.withLock { awaited in
      offsets.contains { $0.offset == awaited?.offset } ? awaited?.countdown : nil
    }
    countdown?.subtract(1)
  }

  func grant(records: Int) {}
  func setPaused(_ isPaused: Bool) {}
  func clusterID() async -> String? { nil }
  func committed(_ partitions: [TopicPartition]) async -> [PartitionOffset] { [] }
  func kept(_ partitions: [TopicPartition]) async -> [PartitionOffset] { [] }
  func lag() -> [TopicPartition: Int64] { [:] }
  func run() async {}
  func close() async { continuation.finish() }
}

/// Acknowledges everything at once.
struct MemorySink: RecordSink {
  func submit(
    _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void
  ) {
    completion(records.map { .success(RecordPosition(topic: $0.topic, partition: 0, offset: 0)) })
  }
}

/// Knows one device of everybody.
struct MemoryRegistry: DeviceRegistry {
  private let target = Target(
    registration: .random(), platform: .apns, handle: Specimen.token, registeredAt: UnixTime(milliseconds: 0))

  func hubs() async throws -> [HubName] { [.default] }
  func resolve(_ queries: [AudienceQuery], limit: Int) async throws -> [AudiencePage] {
    queries.map { _ in AudiencePage(targets: [target], examined: 1, last: nil) }
  }

  func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID { throw Self.isReadOnly }
  func complete(
    _ application: DeviceRequest, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws -> Registration {
    throw Self.isReadOnly
  }
  func install(_ application: DeviceRequest, at now: UnixTime) async throws -> Registration {
    throw Self.isReadOnly
  }
  func remove(
    _ id: RegistrationID, hub: HubName, user: String, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws { throw Self.isReadOnly }
  func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? { nil }
  func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage { AudiencePage(targets: [target], examined: 1, last: nil) }
  func drop(_ verdicts: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] { [] }
  func check() async throws {}

  fileprivate static let isReadOnly = RegistryError(.forbidden, "the benchmarks' registry is read-only")
}

/// Nothing is limited.
extension MemoryRegistry: PushQuotaStore {
  func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime { now }
}

/// No broadcast ever comes.
extension MemoryRegistry: BroadcastStore {
  func plan(_ broadcast: BroadcastID, _ plan: BroadcastPlan, at now: UnixTime) async throws -> (
    pages: Int, segments: Int, isAnnounced: Bool
  ) {
    throw Self.isReadOnly
  }
  func limit(_ broadcast: BroadcastID, to rate: BroadcastRate, at now: UnixTime) async throws -> BroadcastControl {
    throw Self.isReadOnly
  }
  func announce(_ broadcast: BroadcastID) async throws { throw Self.isReadOnly }
  func finishedPages(of broadcast: BroadcastID, in range: Range<Int>) async throws -> [Int] { [] }
  func finish(_ pages: [Int], of broadcast: BroadcastID, at now: UnixTime) async throws { throw Self.isReadOnly }
  func controls(of broadcasts: [BroadcastID]) async throws -> [BroadcastControl] { broadcasts.map { _ in .initial } }
  func control(_ broadcast: BroadcastID, _ control: BroadcastControl, at now: UnixTime) async throws -> BroadcastControl
  {
    throw Self.isReadOnly
  }
  func reserve(_ pushes: Int, of broadcast: BroadcastID, perSecond: Int, at now: UnixTime) async throws -> UnixTime {
    now
  }
  func progress(of broadcast: BroadcastID, at now: UnixTime) async throws -> BroadcastProgress? { nil }
}

/// Builds the requests as the sender for Apple does, and takes each for accepted.
struct InstantSender: PushSender {
  let fields: APNsCredential.Fields
  let platform = Platform.apns
  let readinessProblem: String? = nil

  func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush { try APNsRenderer.render(send) }

  func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {
    var writer = APNsRequestWriter(fields: fields, now: Specimen.now, timeout: .seconds(20))
    completion(
      pushes.map { push in
        PushResult(ticket: writer.request(for: push).ticket, outcome: PushOutcome(.accepted, status: 200))
      })
  }

  func run() async throws {}
}
