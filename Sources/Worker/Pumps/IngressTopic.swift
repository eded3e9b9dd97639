package import FanfareCore
import Metrics
package import RDKafka

/// A hub's ingress topic: its sends are copied to the sends topic in their order, and the hub is enforced.
///
/// A record that names no hub gets the topic's; one that names another hub is dead-lettered, like one that is no send.
package struct IngressTopic: PumpedTopic {
  /// The most bytes held, by the typical size: if records suddenly become larger, those under way exceed it.
  static let maximumBytes = 4 << 20

  private let topics: Topics
  private let hub: HubName
  private let moved: Counter

  package init(topics: Topics, hub: HubName) {
    (self.topics, self.hub) = (topics, hub)
    moved = Counter(label: "fanfare_ingress_total", dimensions: [("hub", "\(hub)")])
  }

  package var name: String { topics.ingress(of: hub) }

  package var policy: PumpPolicy {
    var policy = PumpPolicy(.asWritten)
    (policy.records, policy.bytes) = (256, Self.maximumBytes)
    // A tick ends the pause after records that could not be produced, and a drain. A deployment may have hundreds of
    // hubs.
    policy.tickInterval = .milliseconds(500)
    return policy
  }

  package func configure(_ consumer: inout ConsumerConfiguration) { consumer.prefetchBytes = 2 << 20 }

  package func records(for held: inout HeldRecord, at now: UnixTime) -> [ProducerRecord] {
    let letter: DeadLetter
    if let error = held.condemnation {
      letter = held.letter(because: error, at: now)
    } else {
      do throws(RecordError) {
        return [ProducerRecord(topic: topics.sends, key: held.key, event: try copy(of: held, at: now))]
      } catch {
        letter = DeadLetter(
          reason: error.reason, detail: error.detail, origin: held.place, at: now, key: held.key, value: held.value)
      }
    }
    held.refusal = letter.reason
    return [ProducerRecord(topic: topics.deadLetter, key: letter.key, event: letter.encoded())]
  }

  /// The value for the sends topic.
  private func copy(of held: HeldRecord, at now: UnixTime) throws(RecordError) -> [UInt8] {
    let written = held.timestamp >= 0 ? UnixTime(milliseconds: held.timestamp) : now
    let (send, namesHub, namesTime) = try SendRequest.decode(held.value[...], recordTime: written, in: hub)
    guard send.hub == hub else { throw RecordError(.foreignHub, "hub: names another hub than the topic's") }
    // Copied unchanged if it names all that a worker needs. Without a hub a worker takes `default`. Without a time it
    // would take the timestamp of the copy, and the time to live would begin again.
    guard !namesTime || !namesHub && hub != .default else { return held.value }
    let value = send.encoded()
    guard value.count <= SendRequest.maximumRecordSize || send.replay != nil else {
      throw RecordError(.tooLarge, "hub and time make the record larger than \(SendRequest.maximumRecordSize) bytes")
    }
    return value
  }

  package func count(released: [HeldRecord], settled: [HeldRecord], waiting: Int) {
    for reason in settled.lazy.compactMap(\.refusal) {
      Counter(label: "fanfare_dead_letters_total", dimensions: [("reason", reason.rawValue)]).increment()
    }
    moved.increment(by: settled.count { $0.refusal == nil })
  }
}
