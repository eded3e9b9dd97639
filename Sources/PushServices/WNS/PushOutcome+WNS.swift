import AsyncHTTPClient
import FanfareCore

extension PushOutcome {
  /// What it means for a push that its HTTP/1.1 request got no answer. What was not sent WNS has certainly not seen,
  /// and another try at once would not find a connection either; in all other cases nobody knows.
  init(wnsError error: any Error, wasSent: Bool) {
    switch error as? HTTPClientError {
    case .alreadyShutdown: self = .closed
    case _ where !wasSent: self = .notSent
    case .deadlineExceeded, .readTimeout, .writeTimeout: self.init(.unknown, reason: "DeadlineExceeded")
    default:
      self.init(
        .unknown, reason: error is ResponseAccumulator.ResponseTooBigError ? "ResponseTooLarge" : "ConnectionLost")
    }
  }
}
