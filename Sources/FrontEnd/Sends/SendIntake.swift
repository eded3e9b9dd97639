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
  /// The clock of quotas.
  let clock: any WallClock

  /// Accepts one send within its sender's quota. Returns when it is durable.
  ///
  /// `prepare` runs after all checks and before the send is produced. Throws a refusal, or the error of `prepare` or of
  /// the schedule.
  func accept(_ submission: Submission, into hub: HubEntry, prepare: () async throws -> Void = {}) async throws {
    if !submission.isHeld { try requireRoom() }
    if let (taken, seconds) = Self.takePermits(for: [submission], in: hub), taken == 0 {
      throw Refusal.overQuota(retryAfter: seconds)
    }
    var isTried = false
    do {
      try await prepare()
      isTried = true
      let start = ContinuousClock.now
      let record = try record(of: submission.send)
      if let held = submission.scheduled {
        try await schedule.hold([held], at: held.scheduledAt)
        hub.metrics.scheduled.increment()
        return
      }
      // The sink returns as many results as it gets records.
      if case .failure(let error) = await sink.send([record])[0] { throw Refusal(describing: error) }
      hub.metrics.accepted.increment()
      hub.metrics.acceptance.record(duration: .now - start)
    } catch {
      if !isTried || Refusal(describing: error).isCertain { refund(1, for: [submission], in: hub) }
      throw error
    }
  }

  /// Accepts several sends of one sender, each on its own: the first ones as far as the quota allows.
  /// Returns their results in order when each is durable or refused.
  ///
  /// `asWhole`: accepts none unless the quota allows all. Sends that will be repeated together would otherwise use up
  /// the quota in vain. Throws a refusal if none was tried.
  func accept(
    _ submissions: [Submission], into hub: HubEntry, asWhole: Bool
  ) async throws(Refusal) -> [Result<Void, Refusal>] {
    if submissions.contains(where: { !$0.isHeld }) { try requireRoom() }
    let permits = Self.takePermits(for: submissions, in: hub, asWhole: asWhole)
    if asWhole, let permits, permits.taken == 0 { throw Refusal.overQuota(retryAfter: permits.retryAfter) }
    let admitted = submissions.prefix(permits?.taken ?? submissions.count)
    var results = [Result<Void, Refusal>](repeating: .success(()), count: submissions.count)
    let start = ContinuousClock.now
    var (records, held): ([ProducerRecord], [ScheduledSend]) = ([], [])
    var (recordIndices, heldIndices): ([Int], [Int]) = ([], [])
    records.reserveCapacity(admitted.count)
    recordIndices.reserveCapacity(admitted.count)
    var writer = SendRecordWriter()
    for (index, submission) in admitted.enumerated() {
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
      for (index, outcome) in zip(recordIndices, await sink.send(records)) {
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
    if let first = held.first {
      do {
        // All or none.
        try await schedule.hold(held, at: first.scheduledAt)
        hub.metrics.scheduled.increment(by: held.count)
      } catch {
        for index in heldIndices { results[index] = .failure(Refusal(describing: error)) }
      }
    }
    if let permits {
      let refused = results[..<admitted.endIndex].count {
        if case .failure(let refusal) = $0 { refusal.isCertain } else { false }
      }
      if refused > 0 { refund(refused, for: submissions, in: hub) }
      for index in admitted.endIndex..<submissions.endIndex {
        results[index] = .failure(.overQuota(retryAfter: permits.retryAfter))
      }
    }
    return results
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

  private func requireRoom() throws(Refusal) {
    guard hasRoom() else { throw Refusal(.overloaded, "too many sends are waiting in Kafka; nothing was accepted") }
  }

  /// Takes permits of a sender's quota, see `SenderQuotas.take`; nil if there is no quota.
  private static func takePermits(
    for submissions: [Submission], in hub: HubEntry, asWhole: Bool = false
  ) -> (taken: Int, retryAfter: Int)? {
    guard let quotas = hub.quotas, let first = submissions.first, let sender = first.send.sender else { return nil }
    return quotas.take(submissions.count, by: sender, at: first.receivedAt, asWhole: asWhole)
  }

  private func refund(_ count: Int, for submissions: [Submission], in hub: HubEntry) {
    guard let first = submissions.first, let sender = first.send.sender else { return }
    hub.quotas?.refund(count, to: sender, after: max(.zero, clock.now() - first.receivedAt))
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

/// Makes records durable. Called by the front end; implemented by RDKafka's producer.
package protocol SendSink: Sendable {
  /// Produces records and returns their results in the same order.
  /// Returns within a bounded time, when each record is acknowledged by all in-sync replicas or has failed.
  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>]

  /// Produces a record.
  /// Calls `completion` once, within a bounded time, when the record is acknowledged by all in-sync replicas or has
  /// failed.
  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void)
}

extension Producer: SendSink {
  package func submit(
    _ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void
  ) {
    // The producer returns as many results as it gets records.
    submit([record]) { completion($0[0]) }
  }
}
