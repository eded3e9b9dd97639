import CoreMetrics
import FanfareCore
import Metrics
package import RDKafka

/// Produces sends to Kafka, or adds them to the schedule. The last stage of a send in the front end.
struct SendIntake: Sendable {
  private static let headers = [RecordHeader(name: "content-type", text: CloudEvent.contentType)]

  let sink: any SendSink
  let topics: Topics
  /// Whether Kafka has room for more unconsumed records.
  let hasRoom: @Sendable () -> Bool
  let schedule: any ScheduledSendStore
  /// The clock of spans.
  let clock: any WallClock

  /// Accepts one send within its sender's quotas. Returns when it is durable.
  ///
  /// `prepare` runs after all checks and before the send is produced. Throws a refusal, or the error of `prepare` or of
  /// the schedule.
  func accept(_ submission: Submission, into hub: HubEntry, prepare: () async throws -> Void = {}) async throws {
    if !submission.isHeld { try requireRoom() }
    let admission = try await SendAdmission(of: [submission], in: hub, asWhole: true)
    var isTried = false
    do {
      try await prepare()
      isTried = true
      let start = ContinuousClock.now
      let record = try record(of: submission.send)
      if let held = submission.scheduled {
        try await hold([held], into: hub)
        hub.metrics.scheduled.increment()
        trace([(submission.acceptance, nil)], in: hub)
      } else {
        // The sink returns as many results as it gets records.
        let result = await sink.send([record])[0]
        trace([(submission.acceptance, result.failure)], in: hub)
        try count(result, into: hub, since: start)
      }
    } catch {
      await admission.settle(failed: !isTried || Refusal(describing: error).isCertain ? [0] : [])
      throw error
    }
    await admission.settle(failed: [])
  }

  /// Takes from the sender's quotas and makes the record, if the send needs nothing else than Kafka's acknowledgement.
  /// Otherwise returns nil and takes nothing. The record must be submitted.
  /// Throws the refusals that `accept` would give in any case.
  func prepare(_ submission: Submission, into hub: HubEntry) throws(Refusal) -> (PreparedSend, ProducerRecord)? {
    try requireRoom()
    let record = try record(of: submission.send)
    guard hub.quotas.takeHere(for: submission) else { return nil }
    return (PreparedSend(acceptance: submission.acceptance), record)
  }

  /// Counts a prepared send that was accepted. Otherwise throws why.
  func finish(
    _ send: PreparedSend, _ result: SendResult, into hub: HubEntry, since start: ContinuousClock.Instant
  ) throws(Refusal) {
    if send.acceptance != nil { trace([(send.acceptance, result.failure)], in: hub) }
    try count(result, into: hub, since: start)
  }

  /// Counts an accepted send. Throws why it was not accepted.
  private func count(
    _ result: SendResult, into hub: HubEntry, since start: ContinuousClock.Instant
  ) throws(Refusal) {
    if case .failure(let error) = result { throw Refusal(describing: error) }
    hub.metrics.accepted.increment()
    hub.metrics.acceptance.record(duration: .now - start)
  }

  /// Accepts several sends of one sender, each on its own: the first ones as far as the quotas allow.
  /// Returns their results in order when each is durable or refused.
  ///
  /// `asWhole`: accepts none unless the quotas allow all. Sends that will be repeated together would otherwise use up
  /// the quotas in vain. Throws a refusal, or the error of the registry, if none was tried.
  func accept(
    _ submissions: [Submission], into hub: HubEntry, asWhole: Bool
  ) async throws -> [Result<Void, Refusal>] {
    if submissions.contains(where: { !$0.isHeld }) { try requireRoom() }
    let admission: SendAdmission
    do {
      admission = try await SendAdmission(of: submissions, in: hub, asWhole: asWhole)
    } catch let refusal as Refusal where refusal.code == .overQuota && !asWhole {
      // A batch without a key is answered line by line.
      return submissions.map { _ in .failure(refusal) }
    }
    let admitted = submissions.prefix(admission.count)
    var results = [Result<Void, Refusal>](repeating: .success(()), count: submissions.count)
    let start = ContinuousClock.now
    var (records, held): ([ProducerRecord], [ScheduledSend]) = ([], [])
    var (recordIndices, heldIndices): ([Int], [Int]) = ([], [])
    records.reserveCapacity(admitted.count)
    recordIndices.reserveCapacity(admitted.count)
    var writer = SendRecordWriter()
    for (index, submission) in admitted.enumerated() where admission.refusals[index] == nil {
      do throws(Refusal) {
        let record = try record(of: submission.send, value: writer.record(of: submission.send))
        if let scheduled = submission.scheduled {
          held.append(scheduled)
          heldIndices.append(index)
        } else {
          records.append(record)
          recordIndices.append(index)
        }
      } catch {
        results[index] = .failure(error)
      }
    }
    if !records.isEmpty {
      var accepted = 0
      let outcomes = await sink.send(records)
      trace(zip(recordIndices, outcomes).map { (submissions[$0].acceptance, $1.failure) }, in: hub)
      for (index, outcome) in zip(recordIndices, outcomes) {
        switch outcome {
        case .success: accepted += 1
        case .failure(let error): results[index] = .failure(Refusal(describing: error))
        }
      }
      if accepted > 0 {
        hub.metrics.accepted.increment(by: accepted)
        hub.metrics.acceptance.record(duration: .now - start)
      }
    }
    if !held.isEmpty {
      do {
        // All or none.
        try await hold(held, into: hub)
        hub.metrics.scheduled.increment(by: held.count)
        trace(heldIndices.map { (submissions[$0].acceptance, nil) }, in: hub)
      } catch {
        for index in heldIndices { results[index] = .failure(Refusal(describing: error)) }
      }
    }
    await admission.settle(
      failed: admitted.indices.filter {
        if case .failure(let refusal) = results[$0] { refusal.isCertain } else { false }
      })
    for (index, refusal) in admission.refusals { results[index] = .failure(refusal) }
    return results
  }

  /// Adds sends of one sender to the schedule, all or none. Throws `.overQuota`, and the errors of the schedule.
  private func hold(_ sends: [ScheduledSend], into hub: HubEntry) async throws {
    guard let first = sends.first else { return }
    let limit = hub.quotas.scheduledLimit(of: first.send.sender ?? "")
    if let quota = try await schedule.hold(sends, within: limit, at: first.scheduledAt) {
      throw hub.quotas.refusal(quota, count: sends.count)
    }
  }

  /// Produces a send.
  /// `completion` is called once, on any thread, when it is durable or refused; it must not block.
  ///
  /// Sends with the same key that one task produces one after another keep their order in the topic.
  func produce(_ send: SendRequest, completion: @escaping @Sendable (Result<Void, Refusal>) -> Void) {
    do throws(Refusal) {
      sink.submit(try record(of: send)) { result in completion(result.map { _ in }.mapError { Refusal(describing: $0) })
      }
    } catch {
      completion(.failure(error))
    }
  }

  /// Returns whether the send can be accepted at all.
  /// Fails with the refusal that `accept` would always give.
  func check(_ send: SendRequest) -> Result<Void, Refusal> {
    do throws(Refusal) {
      _ = try record(of: send)
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  /// Ends the spans of sends that Kafka or the schedule has, or has refused.
  private func trace(_ ended: @autoclosure () -> [(acceptance: Acceptance?, failure: RDKafkaError?)], in hub: HubEntry)
  {
    guard let tracing = hub.tracing else { return }
    let now = clock.now()
    let spans = ended().compactMap { acceptance, failure in
      acceptance.map { $0.span(topic: topics.intake(of: hub.name), hub: hub.name, to: now, failure: failure) }
    }
    if !spans.isEmpty { tracing.sink.record(spans) }
  }

  /// Throws if the send would be refused in any case, before anything is taken from its sender's quotas.
  private func requireRoom() throws(Refusal) {
    guard !sink.refusesRecords else { throw Refusal(.kafkaUnavailable, "Kafka is unavailable; nothing was accepted") }
    guard hasRoom() else { throw Refusal(.overloaded, "too many sends are waiting in Kafka; nothing was accepted") }
  }

  private func record(of send: SendRequest) throws(Refusal) -> ProducerRecord {
    try record(of: send, value: send.encoded())
  }

  private func record(of send: SendRequest, value: [UInt8]) throws(Refusal) -> ProducerRecord {
    // A worker would dead-letter a larger record; refusing it here tells the caller.
    guard value.count <= SendRequest.maximumRecordSize else {
      throw Refusal(.tooLarge, "the send makes a record of more than \(SendRequest.maximumRecordSize) bytes")
    }
    return ProducerRecord(
      topic: topics.intake(of: send.hub), key: send.audience.recordKey(of: send.id, hub: send.hub), value: value,
      headers: Self.headers)
  }
}

package typealias SendResult = Result<RecordPosition, RDKafkaError>

/// A send that is admitted and only has to be produced.
struct PreparedSend: Sendable {
  fileprivate let acceptance: Acceptance?
}

/// The beginning of a traced send.
private struct Acceptance: Sendable {
  let trace: AcceptTrace
  let send: SendID
  let start: UnixTime
  let isHeld: Bool

  func span(topic: String, hub: HubName, to end: UnixTime, failure: RDKafkaError?) -> TraceSpan {
    var attributes = TraceSpan.messaging("send", topic: topic, send: send, hub: hub)
    if isHeld { attributes.append(("fanfare.scheduled", .text("true"))) }
    let failure = failure?.code.description
    if let failure { attributes.append(("error.type", .text(failure))) }
    return TraceSpan(
      "send accept", .producer, trace.context, parent: trace.parent, from: start, to: end, attributes: attributes,
      failure: failure)
  }
}

extension Submission {
  /// Nil if it is not traced.
  fileprivate var acceptance: Acceptance? {
    trace.map { Acceptance(trace: $0, send: send.id, start: receivedAt, isHeld: isHeld) }
  }
}

extension SendResult {
  fileprivate var failure: RDKafkaError? { if case .failure(let error) = self { error } else { nil } }
}

/// Makes records durable. Called by the front end; implemented by RDKafka's producer.
package protocol SendSink: Sendable {
  /// Whether records are refused at once, because no broker is reachable. Must not block.
  var refusesRecords: Bool { get }

  /// Produces records and returns their results in the same order.
  /// Returns within a bounded time, when each record is acknowledged by all in-sync replicas or has failed.
  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>]

  /// Produces a record.
  /// Calls `completion` once, within a bounded time, when the record is acknowledged by all in-sync replicas or has
  /// failed.
  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (SendResult) -> Void)

  /// Produces records like the other method, but takes many at a time.
  func submit(_ records: [ProducerRecord], each completion: @escaping @Sendable (Int, SendResult) -> Void)
}

extension SendSink {
  package var refusesRecords: Bool { false }

  package func submit(_ records: [ProducerRecord], each completion: @escaping @Sendable (Int, SendResult) -> Void) {
    for (index, record) in records.enumerated() { submit(record) { completion(index, $0) } }
  }
}

extension Producer: SendSink {
  package func submit(_ record: ProducerRecord, completion: @escaping @Sendable (SendResult) -> Void) {
    // The producer returns as many results as it gets records.
    submit([record]) { completion($0[0]) }
  }
}
