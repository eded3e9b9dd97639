import CoreMetrics
import FanfareCore
import Metrics
import RDKafka

/// The last stage of a send in the front end: it becomes a record, and is accepted when Kafka has it, or when it is
/// held until its time.
struct SendIntake: Sendable {
  private static let headers = [RecordHeader(name: "content-type", text: CloudEvent.contentType)]

  let sink: any SendSink
  let topic: String
  /// Whether Kafka may be given more: false while it holds as much unconsumed as it can.
  let hasRoom: @Sendable () -> Bool
  /// Where sends wait for their time.
  let schedule: any ScheduledSendStore
  /// What time it is for quotas.
  let clock: any WallClock

  /// Throws `.overloaded` while no more may be produced.
  func requireRoom() throws(Refusal) {
    guard hasRoom() else {
      throw Refusal(.overloaded, "more sends are waiting to be sent than may; nothing was accepted")
    }
  }

  /// Accepts one send, within its sender's quota; returns when it is durable. `prepare` comes before, but after all
  /// that can refuse it beforehand. Throws a refusal, or what `prepare` or the store of scheduled sends throws.
  func accept(
    _ submission: Submission, into hub: HubEntry, prepare: () async throws -> Void = {}
  ) async throws {
    if submission.heldUntil == nil { try requireRoom() }
    if let (taken, seconds) = Self.places(for: [submission], in: hub), taken == 0 {
      throw Refusal.overQuota(retryAfter: seconds)
    }
    var isTried = false
    do {
      try await prepare()
      isTried = true
      if let held = submission.scheduled {
        _ = try record(of: held.send)
        try await schedule.hold([held], at: held.scheduledAt)
        hub.metrics.scheduled.increment()
        return
      }
      let start = ContinuousClock.now
      let record = try record(of: submission.send)
      // The sink answers with as many results as it is given records.
      if case .failure(let error) = await sink.send([record])[0] { throw Refusal(describing: error) }
      hub.metrics.accepted.increment()
      hub.metrics.acceptance.record(duration: .now - start)
    } catch {
      if !isTried || Refusal(describing: error).isCertain { giveBack(1, for: [submission], in: hub) }
      throw error
    }
  }

  /// Accepts sends, the first ones as far as the sender's quota reaches, each for itself; returns when each is durable
  /// or refused, in their order. Throws when none was even tried.
  ///
  /// `asWhole`: only if the quota reaches for all of them. Sends that are going to be repeated together would take
  /// places in vain whenever it does not.
  func accept(_ submissions: [Submission], into hub: HubEntry, asWhole: Bool) async throws(Refusal) -> [Result<
    Void, Refusal
  >] {
    if submissions.contains(where: { $0.heldUntil == nil }) { try requireRoom() }
    let places = Self.places(for: submissions, in: hub, asWhole: asWhole)
    if asWhole, let places, places.taken == 0 { throw Refusal.overQuota(retryAfter: places.retryAfter) }
    let admitted = submissions.prefix(places?.taken ?? submissions.count)
    let immediate = admitted.indices.filter { admitted[$0].heldUntil == nil }
    let start = ContinuousClock.now
    var results = [Result<Void, Refusal>](repeating: .success(()), count: submissions.count)
    var accepted = 0
    for (index, result) in zip(immediate, await produce(immediate.map { submissions[$0].send })) {
      results[index] = result
      if case .success = result { accepted += 1 }
    }
    if accepted > 0 {
      hub.metrics.accepted.increment(by: accepted)
      hub.metrics.acceptance.record(duration: .now - start)
    }
    if immediate.count < admitted.count { await hold(admitted, into: hub, results: &results) }
    if let places {
      let refused = results[..<admitted.endIndex].count {
        if case .failure(let refusal) = $0 { refusal.isCertain } else { false }
      }
      if refused > 0 { giveBack(refused, for: submissions, in: hub) }
      for index in admitted.endIndex..<submissions.endIndex {
        results[index] = .failure(.overQuota(retryAfter: places.retryAfter))
      }
    }
    return results
  }

  /// How many of one sender's submissions have a place in its quota, and in how many seconds there is one more; nil
  /// where there is no quota.
  private static func places(
    for submissions: [Submission], in hub: HubEntry, asWhole: Bool = false
  ) -> (taken: Int, retryAfter: Int)? {
    guard let quotas = hub.quotas, let first = submissions.first, let sender = first.send.sender else { return nil }
    return quotas.take(submissions.count, by: sender, at: first.send.acceptedAt, asWhole: asWhole)
  }

  /// Gives back places that were taken for one sender's submissions.
  private func giveBack(_ count: Int, for submissions: [Submission], in hub: HubEntry) {
    guard let send = submissions.first?.send, let sender = send.sender else { return }
    hub.quotas?.giveBack(count, to: sender, after: max(.zero, clock.now() - send.acceptedAt))
  }

  /// Produces sends, each for itself; returns when each is durable or refused, in their order.
  func produce(_ sends: [SendRequest]) async -> [Result<Void, Refusal>] {
    guard !sends.isEmpty else { return [] }
    var results = [Result<Void, Refusal>](repeating: .success(()), count: sends.count)
    var records: [ProducerRecord] = []
    var indices: [Int] = []
    records.reserveCapacity(sends.count)
    indices.reserveCapacity(sends.count)
    var writer = SendRecordWriter()
    for (index, send) in sends.enumerated() {
      do throws(Refusal) {
        records.append(try record(of: send, value: writer.record(of: send)))
        indices.append(index)
      } catch {
        results[index] = .failure(error)
      }
    }
    for (index, outcome) in zip(indices, await sink.send(records)) {
      if case .failure(let error) = outcome { results[index] = .failure(Refusal(describing: error)) }
    }
    return results
  }

  /// Produces a send. `completion` comes once, on whatever thread, when it is durable or refused; it must not hold the
  /// thread up. What is produced by one task one after the other lies in that order in the topic, as far as it has the
  /// same key.
  func produce(_ send: SendRequest, completion: @escaping @Sendable (Result<Void, Refusal>) -> Void) {
    do throws(Refusal) {
      sink.submit(try record(of: send)) { result in completion(result.map { _ in }.mapError { Refusal(describing: $0) })
      }
    } catch {
      completion(.failure(error))
    }
  }

  /// Whether the send could be accepted at all: fails with what `accept` would say of it whenever it came.
  func check(_ send: SendRequest) -> Result<Void, Refusal> {
    do throws(Refusal) {
      _ = try record(of: send)
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  /// Holds those that are scheduled, all or none of those that can be.
  private func hold(_ submissions: ArraySlice<Submission>, into hub: HubEntry, results: inout [Result<Void, Refusal>])
    async
  {
    var held: [ScheduledSend] = []
    var indices: [Int] = []
    for (index, submission) in zip(submissions.indices, submissions) {
      guard let scheduled = submission.scheduled else { continue }
      results[index] = check(scheduled.send)
      guard case .success = results[index] else { continue }
      held.append(scheduled)
      indices.append(index)
    }
    guard let first = held.first else { return }
    do {
      try await schedule.hold(held, at: first.scheduledAt)
      hub.metrics.scheduled.increment(by: held.count)
    } catch {
      for index in indices { results[index] = .failure(Refusal(describing: error)) }
    }
  }

  private func record(of send: SendRequest) throws(Refusal) -> ProducerRecord {
    try record(of: send, value: send.encoded())
  }

  private func record(of send: SendRequest, value: [UInt8]) throws(Refusal) -> ProducerRecord {
    // A worker would set a larger record aside: the caller had better know now.
    guard value.count <= SendRequest.maximumRecordSize else {
      throw Refusal(.tooLarge, "the send makes a record of more than \(SendRequest.maximumRecordSize) bytes")
    }
    return ProducerRecord(
      topic: topic, key: send.audience.recordKey(of: send.id, hub: send.hub), value: value, headers: Self.headers)
  }
}

extension Refusal {
  /// Whether a send that was refused so was certainly not accepted.
  fileprivate var isCertain: Bool { code != .outcomeUnknown && code != .internalError }
}
