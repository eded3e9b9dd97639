import FanfareCore
import HTTP2Client

extension PushOutcome {
  /// What it means for a push that its HTTP/2 request got no answer.
  ///
  /// Only what the service certainly has not seen may be sent again without a thought; what found no connection in all
  /// its time is not helped by another try at once.
  init(_ error: HTTP2RequestError) {
    let (reason, verdictIfNotProcessed): (String, Verdict) =
      switch error.code {
      case .refused: ("RefusedStream", .retryHere)
      case .goAway: ("GoAway", .retryHere)
      case .connectionLost: ("ConnectionLost", .retryHere)
      case .streamReset: ("StreamReset", .retryHere)
      case .responseTooLarge: ("ResponseTooLarge", .retryHere)
      case .deadlineExceeded: ("DeadlineExceeded", .retryLater)
      case .requestTooLarge: ("HeadersTooLarge", .malformed)
      case .superseded: ("ConnectionsRenewed", .retryHere)
      case .queueFull: ("QueueFull", .retryLater)
      case .closed: ("Closed", .retryLater)
      }
    self.init(error.wasPossiblyProcessed ? .unknown : verdictIfNotProcessed, reason: reason)
  }
}
