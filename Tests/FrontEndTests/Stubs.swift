import FanfareCore
import HTTPServer
import RDKafka
import Synchronization

@testable import FrontEnd

/// A sink that keeps records, or fails as the test decides.
final class RecordingSink: SendSink {
  private let kept = Mutex<[ProducerRecord]>([])
  private let failure: @Sendable (ProducerRecord) -> RDKafkaError?

  init(failure: @escaping @Sendable (ProducerRecord) -> RDKafkaError? = { _ in nil }) {
    self.failure = failure
  }

  /// The accepted records, in order.
  var records: [ProducerRecord] { kept.withLock { $0 } }

  var isEmpty: Bool { records.isEmpty }

  /// The sends of the accepted records.
  func sends() throws -> [SendRequest] {
    try records.map { try SendRequest.decode($0.value[...], recordTime: UnixTime(milliseconds: 0)) }
  }

  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] { records.map { take($0) } }

  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void)
  {
    completion(take(record))
  }

  private func take(_ record: ProducerRecord) -> Result<RecordPosition, RDKafkaError> {
    if let error = failure(record) { return .failure(error) }
    return kept.withLock { kept in
      kept.append(record)
      return .success(RecordPosition(topic: record.topic, partition: 0, offset: Int64(kept.count)))
    }
  }
}

/// A recording sink that counts the sends of direct requests: the router's way waits for the results of `send`.
final class CountingSink: SendSink {
  let records: RecordingSink
  private let count = Mutex(0)

  init(failure: @escaping @Sendable (ProducerRecord) -> RDKafkaError? = { _ in nil }) {
    records = RecordingSink(failure: failure)
  }

  var direct: Int { count.withLock { $0 } }

  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] {
    await self.records.send(records)
  }

  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void)
  {
    count.withLock { $0 += 1 }
    records.submit(record, completion: completion)
  }
}

extension SendSink {
  /// A default for sinks that do not depend on the order of scheduled sends.
  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void)
  {
    Task { completion(await send([record])[0]) }
  }
}

/// A history with the reports of a test.
struct ScriptedHistory: SendHistory {
  struct Unreadable: Error {}

  var reports: [SendReport] = []
  var isReadable = true

  func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    try await check()
    return reports.first { $0.id == send && $0.hub == hub }
  }

  func list(_ query: SendQuery) async throws -> SendPage {
    try await check()
    let found = reports.filter { report in
      report.hub == query.hub && (query.state ?? report.state) == report.state
        && (query.sender ?? report.sender) == report.sender
        && query.kind.map { ($0 == .broadcast) == report.isBroadcast } ?? true
    }
    let position =
      query.after.map { after in found.firstIndex { $0.id == after.send }.map { $0 + 1 } ?? found.count } ?? 0
    let page = found[position...].prefix(query.limit)
    let next = page.endIndex < found.endIndex ? page.last : nil
    return SendPage(
      sends: Array(page),
      next: next.map { SendQuery.Position(acceptedAt: $0.acceptedAt ?? UnixTime(milliseconds: 0), send: $0.id) })
  }

  func check() async throws {
    guard isReadable else { throw Unreadable() }
  }
}

/// Dead letters in memory; keeps the orders to redrive.
final class ScriptedDeadLetters: DeadLetterStore {
  private let letters: [LogPlace: DeadLetter]
  private let failure: DeadLetterError?
  private let kept = Mutex<[RedriveOrder]>([])

  init(_ letters: [LogPlace: DeadLetter] = [:], failure: DeadLetterError? = nil) {
    (self.letters, self.failure) = (letters, failure)
  }

  var orders: [RedriveOrder] { kept.withLock { $0 } }

  func list(_ query: DeadLetterQuery) async throws(DeadLetterError) -> DeadLetterPage {
    if let failure { throw failure }
    let visible = letters.sorted { $0.key > $1.key }.filter { query.isVisible($0.value) }
    let found = visible.filter { place, letter in
      (query.reason ?? letter.reason) == letter.reason
        && place.offset < query.before?.offsets[place.partition] ?? .max
    }
    let page = found.prefix(query.limit)
    return DeadLetterPage(
      letters: page.map { LetterSummary($0.value, at: $0.key) },
      counts: Dictionary(visible.map { ($0.value.reason, 1) }, uniquingKeysWith: +), countsAll: true,
      next: page.count < found.count ? page.last.map { DeadLetterPosition([$0.key.partition: $0.key.offset]) } : nil)
  }

  func letter(at place: LogPlace) async throws(DeadLetterError) -> DeadLetter? {
    if let failure { throw failure }
    return letters[place]
  }

  func redrive(_ order: RedriveOrder) async throws(DeadLetterError) -> RedriveOutcome {
    if let failure { throw failure }
    kept.withLock { $0.append(order) }
    var outcome = RedriveOutcome()
    for (place, letter) in letters.sorted(by: { $0.key < $1.key }) where order.isVisible(letter) {
      switch order.selection {
      case .places(let places):
        guard places.contains(place) else { continue }
        outcome.found.insert(place)
      case .reason(let reason): guard letter.reason == reason else { continue }
      }
      if letter.isWhole { outcome.redriven += 1 } else { outcome.cut.append(place) }
    }
    return outcome
  }
}

/// A store that only counts payloads.
final class CountingStore: SecurePayloadStore {
  private let counts = Mutex((stored: 0, discarded: 0))

  /// The number of payloads ever stored.
  var stored: Int { counts.withLock { $0.stored } }
  /// The number of payloads that were not discarded.
  var kept: Int { counts.withLock { $0.stored - $0.discarded } }

  func store(_ payload: String, id: SecurePayloadID, hub: HubName, recipient: String, expiresAt: UnixTime) async throws
  {
    counts.withLock { $0.stored += 1 }
  }

  func read(
    _ id: SecurePayloadID, hub: HubName, recipient: String, isDelivered: Bool, at now: UnixTime
  ) async throws -> SecurePayload? { nil }

  func discard(_ id: SecurePayloadID, hub: HubName) async throws {
    counts.withLock { $0.discarded += 1 }
  }
}

/// A schedule that fails as the test decides.
final class TroubledSchedule: ScheduledSendStore {
  struct Unreachable: Error {}

  enum Trouble {
    case none, cannotStoreResults, takenByOthers
  }

  private let store: any ScheduledSendStore
  private let whenFailing: @Sendable () async -> Void
  private let held = Mutex(Trouble.none)

  /// `whenFailing` is called when storing results fails.
  init(over store: any ScheduledSendStore, whenFailing: @escaping @Sendable () async -> Void = {}) {
    self.store = store
    self.whenFailing = whenFailing
  }

  var trouble: Trouble {
    get { held.withLock { $0 } }
    set { held.withLock { $0 = newValue } }
  }

  func hold(_ sends: [ScheduledSend], within limit: ScheduledSendLimit, at now: UnixTime) async throws -> QuotaName? {
    try await store.hold(sends, within: limit, at: now)
  }

  func nextDue() async throws -> UnixTime? { try await store.nextDue() }

  func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime,
    unreadable: @escaping @Sendable (HubName, SendID) -> Void
  ) async throws -> [ScheduledSend] {
    trouble == .takenByOthers
      ? [] : try await store.takeDue(limit, for: lease, until: end, at: now, unreadable: unreadable)
  }

  func finish(_ sends: [ScheduledSend], of lease: LeaseID, at now: UnixTime) async throws {
    try await requireAvailability()
    try await store.finish(sends, of: lease, at: now)
  }

  func release(_ sends: [ScheduledSend], of lease: LeaseID, until moment: UnixTime) async throws {
    try await requireAvailability()
    try await store.release(sends, of: lease, until: moment)
  }

  private func requireAvailability() async throws {
    guard trouble == .cannotStoreResults else { return }
    await whenFailing()
    throw Unreachable()
  }

  func control(_ send: SendID, hub: HubName, to state: ScheduledSend.State, at now: UnixTime) async throws
    -> ScheduledSend?
  {
    try await store.control(send, hub: hub, to: state, at: now)
  }

  func scheduled(_ send: SendID, hub: HubName) async throws -> ScheduledSend? {
    try await store.scheduled(send, hub: hub)
  }

  func waiting(_ query: SendQuery) async throws -> [ScheduledSend] { try await store.waiting(query) }
}

/// A registry whose calls all fail.
struct BrokenRegistry: DeviceRegistry, RegistrationDirectory {
  let error: any Error & Sendable

  func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID { throw error }
  func complete(
    _ application: DeviceRequest, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws -> Registration { throw error }
  func install(_ application: DeviceRequest, at now: UnixTime) async throws -> Registration { throw error }
  func remove(
    _ id: RegistrationID, hub: HubName, user: String, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws { throw error }
  func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? { throw error }
  func hubs() async throws -> [HubName] { throw error }
  func resolve(_ queries: [AudienceQuery], limit: Int) async throws -> [AudiencePage] { throw error }
  func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage { throw error }
  func drop(_ verdicts: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] { throw error }
  func check() async throws { throw error }
  func registration(ofInstallation installation: String, hub: HubName) async throws -> Registration? { throw error }
  func registrations(ofInstallation installation: String, hub: HubName) async throws -> [Registration] { throw error }
  func tags(withPrefix prefix: String, hub: HubName, limit: Int) async throws -> [String] { throw error }
  func list(
    _ audience: Audience, hub: HubName, of slice: RegistrationSlice, limit: Int
  ) async throws -> RegistrationPage { throw error }
  func revise(
    _ former: Registration, by application: DeviceRequest, at now: UnixTime
  ) async throws -> Registration { throw error }
}

/// Notes where callers come from, and admits those whose password equals the name.
final class OriginRecorder: Authenticator {
  private let noted = Mutex<[LoginOrigin]>([])

  /// Each caller's address, with a star if the caller is known there.
  var origins: [String] { noted.withLock { $0 }.map { "\($0.address)\($0.isKnown ? "*" : "")" } }

  var challenge: String { BasicCredentials.challenge }

  func authenticate(_ credentials: Credentials, hub: HubName, from origin: LoginOrigin) async throws -> Principal? {
    noted.withLock { $0.append(origin) }
    guard case .basic(let basic) = credentials, basic.user == basic.password else { return nil }
    return Principal(user: basic.user, scopes: [.device])
  }
}

extension LoginOrigin {
  /// A stranger at an unknown address.
  static let unknown = Self(address: .unknown)
}
