import FanfareCore
import RDKafka

@testable import Ledger

/// Sample records, as the front end and the workers write them.
enum Samples {
  static let topics = Topics(prefix: "test")
  static let otherHub = HubName("other") ?? .default

  static func send(_ id: SendID, hub: HubName = .default, at time: UnixTime = .start) -> SendRequest {
    SendRequest(
      id: id, hub: hub, sender: "alice", acceptedAt: time, audience: .user("bob"),
      content: Content(message: Message(body: "hello")))
  }

  static func status(
    _ id: SendID, hub: HubName = .default, part: Int = 0, of parts: Int = 1, attempt: DispatchID? = nil,
    state: StatusRecord.State = .settled, at time: UnixTime = .start, settledAfter: Duration = .seconds(1),
    devices: [DeviceResult] = [], times: SendTimes = SendTimes()
  ) -> StatusRecord {
    StatusRecord(
      send: id, hub: hub, part: part, parts: parts, attempt: attempt, state: state, sender: "alice",
      audience: .user("bob"), acceptedAt: time, settledAt: time + settledAfter, devices: devices,
      times: times)
  }

  static func device(
    _ platform: Platform = .apns, _ outcome: DeviceResult.Outcome = .delivered, number: UInt64 = 1
  ) -> DeviceResult {
    DeviceResult(
      registration: RegistrationID(high: 7, low: number), platform: platform, outcome: outcome,
      reason: outcome == .delivered ? "" : "BadDeviceToken", status: outcome == .delivered ? 200 : 400, attempts: 1)
  }
}

/// A record of either topic.
enum Sample: Sendable {
  case send(SendRequest)
  case status(StatusRecord)

  var value: [UInt8] {
    switch self {
    case .send(let send): send.encoded()
    case .status(let status): status.encoded()
    }
  }

  func topic(_ topics: Topics) -> String {
    switch self {
    case .send: topics.sends
    case .status: topics.status
    }
  }
}

extension LedgerStore {
  /// Encodes the records, writes them as one batch and stores its positions, as a ledger without pending writes does.
  /// Returns the number of duplicates.
  @discardableResult
  func write(_ samples: [Sample]) async throws -> Int {
    let batch = batch(samples)
    let duplicates = try await write(batch)
    try await reach(batch.positions)
    return duplicates
  }

  /// Encodes the records and decodes them as one batch.
  func batch(_ samples: [Sample]) -> LedgerBatch {
    let topics = Samples.topics
    let records = samples.enumerated().map { index, sample in
      ConsumedRecord(
        topic: sample.topic(topics), partition: 0, offset: Int64(index), timestamp: 0, key: nil,
        value: sample.value[...])
    }
    return LedgerBatch(records, topics: topics, maximumDevices: maximumDevices)
  }
}
