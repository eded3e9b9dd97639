import FoundationEssentials
import Metrics
import Synchronization

/// Exports what librdkafka's statistics say about the Kafka clients of a role.
///
/// A client is known by its kind and its number in the process, such as `consumer-2`. The sums and the slowest broker
/// are exported, not every broker and partition.
final class KafkaMetrics: Sendable {
  /// The used part of the statistics.
  private struct Statistics: Decodable {
    struct Broker: Decodable {
      /// Round-trip times in microseconds.
      struct Window: Decodable { let p99: Int64 }

      let state: String
      let txerrs: Int64
      let rxerrs: Int64
      let req_timeouts: Int64
      let disconnects: Int64?
      let rtt: Window?
    }

    let name: String
    let msg_cnt: Int64
    let txmsgs: Int64
    let txmsg_bytes: Int64
    let rxmsgs: Int64
    let rxmsg_bytes: Int64
    let brokers: [String: Broker]
  }

  /// A counter whose total librdkafka keeps.
  private struct Total {
    let counter: Counter
    var last: Int64 = 0

    init(_ label: String, _ dimensions: [(String, String)], _ factory: any MetricsFactory) {
      counter = Counter(label: label, dimensions: dimensions, factory: factory)
    }

    mutating func reach(_ total: Int64) {
      counter.increment(by: max(0, total - last))
      last = total
    }
  }

  private struct Client {
    let queued: Gauge
    let brokers: Gauge
    let roundTrip: Gauge
    var sent: Total
    var sentBytes: Total
    var consumed: Total
    var consumedBytes: Total
    var errors: Total
    var disconnects: Total

    init(_ name: String, _ factory: any MetricsFactory) {
      let dimensions = [("client", name)]
      queued = Gauge(label: "fanfare_kafka_client_queued_messages", dimensions: dimensions, factory: factory)
      brokers = Gauge(label: "fanfare_kafka_client_connected_brokers", dimensions: dimensions, factory: factory)
      roundTrip = Gauge(label: "fanfare_kafka_client_round_trip_seconds", dimensions: dimensions, factory: factory)
      sent = Total("fanfare_kafka_client_sent_messages_total", dimensions, factory)
      sentBytes = Total("fanfare_kafka_client_sent_bytes_total", dimensions, factory)
      consumed = Total("fanfare_kafka_client_consumed_messages_total", dimensions, factory)
      consumedBytes = Total("fanfare_kafka_client_consumed_bytes_total", dimensions, factory)
      errors = Total("fanfare_kafka_client_errors_total", dimensions, factory)
      disconnects = Total("fanfare_kafka_client_disconnects_total", dimensions, factory)
    }

    mutating func show(_ statistics: Statistics) {
      let all = statistics.brokers.values
      queued.record(statistics.msg_cnt)
      brokers.record(all.count { $0.state == "UP" })
      roundTrip.record(Double(all.compactMap(\.rtt?.p99).max() ?? 0) / 1_000_000)
      sent.reach(statistics.txmsgs)
      sentBytes.reach(statistics.txmsg_bytes)
      consumed.reach(statistics.rxmsgs)
      consumedBytes.reach(statistics.rxmsg_bytes)
      errors.reach(all.reduce(0) { $0 + $1.txerrs + $1.rxerrs + $1.req_timeouts })
      disconnects.reach(all.reduce(0) { $0 + ($1.disconnects ?? 0) })
    }
  }

  private let factory: (any MetricsFactory)?
  private let clients = Mutex<[String: Client]>([:])

  /// `factory`: the system's unless given.
  init(factory: (any MetricsFactory)? = nil) { self.factory = factory }

  /// Takes librdkafka's statistics. Ignores what it cannot read: its metrics are then missing.
  func record(_ json: [UInt8]) {
    // Another version of librdkafka may lack a member.
    guard let statistics = try? JSONDecoder().decode(Statistics.self, from: Data(json)) else { return }
    let name = String(statistics.name.split(separator: "#").last ?? "")
    clients.withLock { clients in
      clients[name, default: Client(name, factory ?? MetricsSystem.factory)].show(statistics)
    }
  }
}
