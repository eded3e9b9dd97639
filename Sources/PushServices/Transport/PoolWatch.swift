import FanfareCore
import HTTP2Client
import Logging

/// Told of a pool's connections, it knows whether the service can be reached.
struct PoolWatch: HTTP2PoolObserver {
  let complaints: Complaints
  let logger: Logger

  func pool(_ host: String, didObserve event: HTTP2PoolEvent) {
    switch event {
    case .opened: complaints.clear(.connection)
    case .failed(_, let error, _):
      if complaints.set(.connection, "cannot connect to \(host): \(error.code)") {
        logger.warning("push service not reached", metadata: [LogKeys.host: "\(host)", LogKeys.error: "\(error)"])
      }
    case .goAway(_, let code, _, let debugData):
      // APNs explains itself there in the same JSON as in an answer; other services' texts are of no fixed vocabulary.
      let reason = APNsErrorBody(debugData).reason
      logger.info(
        "push service goes away",
        metadata: [LogKeys.host: "\(host)", LogKeys.error: "\(code)", LogKeys.reason: "\(reason?.rawValue ?? "")"])
    case .streamLimitChanged, .closed, .resending: break
    }
  }
}
