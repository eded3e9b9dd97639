import EmbeddedKafka
import FanfareCore
import FoundationEssentials
import RDKafka
import Synchronization

/// Sends of an Azure client while its front end is killed, with and without an `Idempotency-Key`.
///
/// The client does what Azure's SDKs do: a request without an answer is sent again, to the next front end. Kafka's
/// acknowledgements are slow, so that a kill finds most requests between acceptance and answer. With a key each send
/// arrives exactly once. Without one it arrives at least once, and twice only if its request was repeated.
final class AzureStream: Sendable {
  private static let rule = "faults"
  private static let key = "only-for-the-fault-suite"
  private static let file = "azure-rules"
  private static let user = "azure-client"
  private static let device = "azure-device"
  /// The stream's sends are numbered after those of the load.
  private static let first = 1_000_000_000
  private static let kills = 10
  private static let attempts = 50
  /// Requests at the same time.
  private static let width = 8

  private struct State {
    var next = AzureStream.first
    var isOver = false
    /// The ids of the accepted sends, by number.
    var accepted: [Int: SendID] = [:]
    /// The sends whose request was repeated.
    var repeated: Set<Int> = []
  }

  private let state = Mutex(State())

  var scenario: FaultScenario {
    FaultScenario(
      "kill -9 of the api under Azure sends",
      settings: ["FANFARE_AZURE_ENABLED": "true", "FANFARE_HUB_DEFAULT_AZURE_RULES_FILE": Self.file],
      files: [Self.file: "\(Self.rule) Send \(Self.key)\n"], needs: [.brokerFaults],
      inspect: { deployment, _ in try await self.inspect(deployment) },
      injure: { deployment, _ in
        try await self.run(in: deployment)
        return []
      })
  }

  private func run(in deployment: FaultDeployment) async throws {
    let frontEnd = try await deployment.frontEnd
    _ = try await frontEnd.request(
      "POST", "/api/register", user: Self.user,
      body: #"{"platform":"android","instId":"azure","deviceToken":"\#(Self.device)"}"#)
    try await deployment.cluster.setRoundTripTime(.milliseconds(300))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<Self.width { group.addTask { try await self.post(to: deployment) } }
      for _ in 0..<Self.kills {
        try await Task.sleep(for: .milliseconds(Int64.random(in: 500...1500)))
        try await deployment.kill("api", 0)
        try await deployment.startFrontEnd(0)
      }
      try await Task.sleep(for: .seconds(1))
      state.withLock { $0.isOver = true }
      try await group.waitForAll()
    }
    try await deployment.cluster.setRoundTripTime(.zero)
  }

  /// Posts sends one after another. Half of them have an `Idempotency-Key`.
  private func post(to deployment: FaultDeployment) async throws {
    while true {
      let number = state.withLock { state -> Int? in
        guard !state.isOver else { return nil }
        state.next += 1
        return state.next
      }
      guard let number else { return }
      try await post(number, to: deployment)
    }
  }

  private func post(_ number: Int, to deployment: FaultDeployment) async throws {
    var headers = [
      ("content-type", "application/json;charset=utf-8"), ("servicebusnotification-format", "gcm"),
      ("servicebusnotification-tags", "username:\(Self.user)"),
    ]
    if Self.hasKey(number) { headers.append(("idempotency-key", "azure-\(number)")) }
    for attempt in 0..<Self.attempts {
      if attempt > 0 {
        _ = state.withLock { $0.repeated.insert(number) }
        try await Task.sleep(for: .milliseconds(100))
      }
      let frontEnds = await deployment.frontEnds
      let door = AzureClient(
        base: frontEnds[(number + attempt) % frontEnds.count].base, rule: Self.rule, key: Self.key)
      let answer: AzureClient.Answer
      do {
        answer = try await door.send(
          "POST", "/messages", headers: headers, body: #"{"data":{"message":"\#(FaultLoad.mark)\#(number)"}}"#)
      } catch  where !Task.isCancelled {
        continue
      }
      switch answer.status {
      case 201:
        guard let id = answer.id.flatMap({ SendID($0) }) else { throw BenchError("an Azure send has no id") }
        state.withLock { $0.accepted[number] = id }
        return
      case 429, 500...599: continue
      default: throw BenchError("the Azure send \(number) was refused: \(answer.status)")
      }
    }
    throw BenchError("the Azure send \(number) was not accepted in \(Self.attempts) attempts")
  }

  /// Half of the sends to each of the two front ends.
  private static func hasKey(_ number: Int) -> Bool { number / 2 % 2 == 0 }

  /// Compares the arrivals with what the client was told.
  ///
  /// Throws if no kill came between acceptance and answer: then the row proves nothing.
  private func inspect(_ deployment: FaultDeployment) async throws -> FaultFindings {
    let state = state.withLock { $0 }
    let arrivals = try await deployment.arrivals(on: .fcm, at: [Self.device])
    let counts = Dictionary(grouping: arrivals, by: \.number).mapValues(\.count)
    let keyed = state.accepted.filter { Self.hasKey($0.key) }
    let records = try await Self.records(of: Set(keyed.values), deployment)
    let again = records.values.count { $0 > 1 }
    var findings = FaultFindings()
    findings.lost = state.accepted.keys.count { counts[$0] == nil }
    var twice = 0
    for (number, count) in counts where count > 1 {
      if Self.hasKey(number) || !state.repeated.contains(number) { findings.errors += 1 } else { twice += 1 }
    }
    let observed =
      "\(keyed.count) with a key, \(again) of them twice in Kafka, \(keyed.keys.count { counts[$0] != 1 }) not once "
      + "on the device; \(state.accepted.count - keyed.count) without, \(twice) of them twice on the device"
    guard twice > 0, again > 0 else {
      throw BenchError(
        "no kill came between acceptance and answer: \(state.repeated.count) requests repeated, \(observed)")
    }
    findings.observed = observed
    return findings
  }

  /// The number of records of each of the sends on the sends topic.
  private static func records(of sends: Set<SendID>, _ deployment: FaultDeployment) async throws -> [SendID: Int] {
    let reader = try LogReader(client: deployment.kafka, logger: deployment.logger)
    let scan = try reader.scan(try await reader.spans(of: [deployment.topics.sends]))
    var counts: [SendID: Int] = [:]
    while let records = try await scan.next() {
      for record in records {
        let send = try SendRequest.decode(record.value[...], recordTime: UnixTime(milliseconds: 0))
        if sends.contains(send.id) { counts[send.id, default: 0] += 1 }
      }
    }
    return counts
  }
}
