import NIOCore

/// Whether the peer of one connection still answers: judged by received bytes, PINGs and requests that time out.
struct Liveness {
  /// What to do after a check.
  enum Verdict: Hashable {
    case alive
    case sendPing
    case dead(String)
  }

  /// This many timeouts in a row, without a received byte, mean that the connection is dead.
  private static let timeoutLimit = 3

  private var lastInbound = NIODeadline.now()
  private var pingSentAt: NIODeadline?
  /// Requests that timed out since the last received byte.
  private var timeoutsInARow = 0

  mutating func received(at now: NIODeadline) {
    lastInbound = now
    timeoutsInARow = 0
  }

  mutating func requestTimedOut() { timeoutsInARow += 1 }

  mutating func pingSent(at now: NIODeadline) { pingSentAt = now }

  mutating func pingAnswered() { pingSentAt = nil }

  func check(at now: NIODeadline, _ settings: ClientConnectionSettings) -> Verdict {
    if timeoutsInARow >= Self.timeoutLimit, now - lastInbound >= settings.pingTimeout {
      return .dead("several requests in a row timed out without a byte from the server")
    }
    guard let interval = settings.idlePingInterval else { return .alive }
    if let pingSentAt {
      return now - pingSentAt >= settings.pingTimeout ? .dead("PING was not answered in time") : .alive
    }
    return now - lastInbound >= interval ? .sendPing : .alive
  }
}

/// The history of one connection, which decides whether its end delays the next one.
struct ConnectionHistory {
  /// The code of the peer's GOAWAY.
  var peerGoAway: HTTP2ErrorCode?
  /// When the peer's SETTINGS arrived.
  var openedAt: NIODeadline?
  /// Whether a request has been started.
  var hasRequested = false
  /// Whether a complete answer has arrived.
  var hasAnswered = false
  /// A connection that was open for at least this long may be replaced at once, even if it was of no use.
  let longestBackoff: TimeAmount

  init(longestBackoff: TimeAmount) { self.longestBackoff = longestBackoff }

  /// Whether the peer sent GOAWAY without one answer, and so early that reconnecting at once could go on forever.
  var wasSentAway: Bool { peerGoAway != nil && !hasAnswered && wasBrief }

  /// Whether the connection counts as failed when it ends with `error`.
  ///
  /// One without requests that lived long enough does not: a proxy may have closed it because it was idle.
  func isFailure(endingWith error: HTTP2ConnectionError?) -> Bool {
    peerGoAway == .enhanceYourCalm || (error != nil && !hasAnswered && (hasRequested || wasBrief))
  }

  private var wasBrief: Bool {
    guard let openedAt else { return true }
    return .now() - openedAt < longestBackoff
  }
}
