import CoreMetrics
import FanfareCore
import Metrics
import RDKafka

/// The last stage of a send in the front end: it becomes a record, and is accepted when Kafka has it.
struct SendIntake: Sendable {
  private static let headers = [RecordHeader(name: "content-type", text: "application/cloudevents+json")]

  let sink: any SendSink
  let topic: String
  /// Whether Kafka may be given more: false while it holds as much unconsumed as it can.
  let hasRoom: @Sendable () -> Bool

  /// Throws `.overloaded` while no more may be produced.
  func requireRoom() throws(Refusal) {
    guard hasRoom() else { throw Refusal(.overloaded, "more sends are waiting to be sent than may; nothing was accepted") }
  }

  /// Accepts one send; returns when it is durable.
  func accept(_ send: SendRequest, into hub: HubEntry) async throws(Refusal) {
    try requireRoom()
    let start = ContinuousClock.now
    let record = try record(of: send)
    // The sink answers with as many results as it is given records.
    if case .failure(let error) = await sink.send([record])[0] { throw Refusal(describing: error) }
    hub.metrics.accepted.increment()
    hub.metrics.acceptance.record(duration: .now - start)
  }

  /// Accepts sends, each for itself; returns when each is durable or refused, in their order. Throws when none was even tried.
  func accept(_ sends: [SendRequest], into hub: HubEntry) async throws(Refusal) -> [Result<Void, Refusal>] {
    try requireRoom()
    let start = ContinuousClock.now
    var results = [Result<Void, Refusal>](repeating: .success(()), count: sends.count)
    var records: [ProducerRecord] = []
    var indices: [Int] = []
    records.reserveCapacity(sends.count)
    indices.reserveCapacity(sends.count)
    for (index, send) in sends.enumerated() {
      do throws(Refusal) {
        records.append(try record(of: send))
        indices.append(index)
      } catch {
        results[index] = .failure(error)
      }
    }
    var accepted = 0
    for (index, outcome) in zip(indices, await sink.send(records)) {
      switch outcome {
      case .success: accepted += 1
      case .failure(let error): results[index] = .failure(Refusal(describing: error))
      }
    }
    if accepted > 0 {
      hub.metrics.accepted.increment(by: accepted)
      hub.metrics.acceptance.record(duration: .now - start)
    }
    return results
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

  private func record(of send: SendRequest) throws(Refusal) -> ProducerRecord {
    let value = send.encoded()
    // A worker would set a larger record aside: the caller had better know now.
    guard value.count <= SendRequest.maximumRecordSize else {
      throw Refusal(.tooLarge, "the send makes a record of more than \(SendRequest.maximumRecordSize) bytes")
    }
    return ProducerRecord(
      topic: topic, key: send.audience.recordKey(of: send.id, hub: send.hub), value: value, headers: Self.headers)
  }
}
