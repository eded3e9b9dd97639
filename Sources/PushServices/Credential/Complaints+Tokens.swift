import FanfareCore
import Logging

extension Complaints {
  /// Notes what a token endpoint has answered. An endpoint that is out of reach is nothing to complain of while the old
  /// token serves.
  func observe(_ answer: TokenAnswer, expiresAt: UnixTime?, gauges: SenderGauges, logger: Logger) {
    switch answer {
    case .granted:
      clear(.credential)
      if let expiresAt { gauges.record(credentialExpiresAt: expiresAt) }
    case .refused(let reason, let status):
      if set(.credential, "the token endpoint answers \(reason)") {
        logger.error(
          "access token refused", metadata: [LogKeys.reason: "\(reason)", LogKeys.status: "\(status)"])
      }
    case .unavailable(let status, _):
      logger.warning("access token not available", metadata: [LogKeys.status: "\(status)"])
      if expiresAt == nil { set(.credential, "the token endpoint does not answer") }
    }
  }
}
