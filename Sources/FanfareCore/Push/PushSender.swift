/// One push service, for one hub. The worker renders a send once, submits pushes in batches and is told what became of
/// each.
package protocol PushSender: Sendable {
  /// The platform it serves.
  var platform: Platform { get }

  /// Renders what the send shows on this platform. Called once per send, from the worker's own task; does no I/O.
  ///
  /// Throws the outcome that every push of it would have: a payload the service would refuse is not worth a request.
  func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush

  /// Takes pushes and returns at once. Every ticket is reported exactly once, in batches, on a thread of the sender's
  /// choice, within the request timeout of the sender's configuration, unless `run()` has ended, after which the rest
  /// is reported as `.retryLater`. The sender resends by itself only what the service certainly has not seen; all else
  /// is the worker's decision.
  func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void)

  /// The lifetime of connections and credentials; returns after the task is cancelled and everything submitted has been
  /// reported.
  func run() async throws

  /// What keeps the sender from working now, for readiness and alarms; nil when nothing does.
  var readinessProblem: String? { get }
}

/// What became of one push.
package struct PushResult: Sendable {
  /// The push's own ticket.
  package let ticket: UInt64
  package let outcome: PushOutcome

  package init(ticket: UInt64, outcome: PushOutcome) {
    self.ticket = ticket
    self.outcome = outcome
  }
}
