import FanfareCore

/// One answer of APNs, read.
struct APNsAnswer: Sendable {
  /// What it means for the push.
  let outcome: PushOutcome
  /// The reason, where there is one that we know.
  let reason: APNsReason?

  /// Reads an answer. The body's reason decides, then the status. A reason that we do not know never condemns a device:
  /// below 500 the message is rejected, from 500 on it is tried again. `retry-after` is not documented by Apple, but
  /// obeyed where it appears.
  init(status: Int, body: [UInt8], retryAfter: String?, now: UnixTime) {
    if status == 200 {
      outcome = PushOutcome(.accepted, status: 200)
      reason = nil
      return
    }
    let error = APNsErrorBody(body)
    reason = error.reason
    let verdict = reason?.verdict ?? (status >= 500 || status == 429 || status == 408 ? .retryLater : .rejected)
    outcome = PushOutcome(
      verdict,
      reason: reason?.rawValue ?? "UnknownReason",
      status: status,
      retryAfter: verdict == .retryLater ? retryAfter.flatMap { RetryAfter.duration($0, now: now) } : nil,
      since: verdict == .deviceGone ? error.timestamp : nil)
  }
}
