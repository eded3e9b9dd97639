import NIOCore

/// The pool as its connections see it. Called on the connections' event loops.
protocol ClientConnectionOwner: AnyObject, Sendable {
  /// TLS is up and the peer's SETTINGS are in force. Comes once, before the first `take`.
  func opened(_ id: Int, streamLimit: Int)

  /// Asks for requests, as many as `streamLimit` has room for; comes at the end of every turn. If `more` is true, the
  /// connection asks again after the turn.
  func take(_ id: Int, openStreams: Int, streamLimit: Int, mayTake: Bool, now: NIODeadline) -> (
    batches: [RequestBatch], more: Bool
  )

  /// The first answer has come.
  func proved(_ id: Int)

  /// Requests that the peer guaranteed not to have processed: `first` are to be sent before all others, `last` behind
  /// them.
  func giveBack(_ id: Int, first: [RequestBatch], last: [RequestBatch])

  /// The connection takes no requests any more. May come more than once. `isFailure`: the peer asked for calm, or has
  /// sent the connection away before it was of any use.
  func draining(_ id: Int, isFailure: Bool)

  /// The connection is gone and all its requests are reported or given back. Comes exactly once. `error` is nil if we
  /// closed it in peace; `isFailure`: it did not serve what it was needed for or ended soon, without one answer, or the
  /// peer asked for calm.
  func ended(_ id: Int, wasOpened: Bool, isFailure: Bool, error: HTTP2ConnectionError?)

  /// Something worth counting.
  func observe(_ event: HTTP2PoolEvent)
}
