import FanfareCore
import HTTP2Client
import Metrics

/// What is measured of every sender.
struct SenderGauges: Sendable {
  private let connections: Gauge
  private let streams: Gauge
  private let credentialExpiry: Gauge
  private let interval: Duration

  init(hub: HubName, platform: Platform, interval: Duration) {
    self.interval = interval
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

  /// The pool as it is now.
  func record(_ pool: HTTP2ConnectionPool) {
    let statistics = pool.statistics
    connections.record(statistics.connections + statistics.draining)
    streams.record(statistics.openStreams)
  }

  /// Looks at once and from time to time, until the task is cancelled.
  func watch(_ look: () -> Void) async {
    while true {
      look()
      do { try await Task.sleep(for: interval) } catch { break }
    }
  }
}
