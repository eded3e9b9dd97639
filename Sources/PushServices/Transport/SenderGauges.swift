import FanfareCore
import HTTP2Session
import Metrics

/// What is measured of every sender.
struct SenderGauges: Sendable {
  /// How often connections and streams are looked at.
  static let interval: Duration = .seconds(5)

  private let connections: Gauge
  private let streams: Gauge
  private let credentialExpiry: Gauge

  init(hub: HubName, platform: Platform) {
    let dimensions = [("hub", hub.rawValue), ("platform", platform.rawValue)]
    connections = Gauge(label: "fanfare_push_connections", dimensions: dimensions)
    streams = Gauge(label: "fanfare_push_streams", dimensions: dimensions)
    credentialExpiry = Gauge(label: "fanfare_push_credential_expiry_timestamp_seconds", dimensions: dimensions)
  }

  /// The credential in use is good until then.
  func record(credentialExpiresAt moment: UnixTime) {
    credentialExpiry.record(moment.seconds)
  }

  /// Requests on their way over connections that carry one each.
  func record(requests: Int) {
    connections.record(requests)
    streams.record(requests)
  }

  /// Looks at a pool from time to time, until the task is cancelled.
  func watch(_ pool: HTTP2ConnectionPool) async {
    while true {
      let statistics = pool.statistics
      connections.record(statistics.connections + statistics.draining)
      streams.record(statistics.openStreams)
      do { try await Task.sleep(for: Self.interval) } catch { break }
    }
  }
}
