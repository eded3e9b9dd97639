import NIOCore

/// A connection as the pool holds it, usable from every thread.
final class ConnectionHandle: Sendable {
  let id: Int
  private let eventLoop: any EventLoop
  private let connection: NIOLoopBoundBox<HTTP2ClientConnection?>

  init(id: Int, eventLoop: any EventLoop) {
    self.id = id
    self.eventLoop = eventLoop
    connection = .makeEmptyBox(eventLoop: eventLoop)
  }

  func connect(settings: ClientConnectionSettings, owner: any ClientConnectionOwner) {
    eventLoop.execute { [self] in
      let opening = HTTP2ClientConnection(id: id, settings: settings, eventLoop: eventLoop, owner: owner)
      connection.value = opening
      opening.open()
    }
  }

  /// Lets the connection take requests.
  func wake() { eventLoop.execute { [self] in connection.value?.endTurn() } }

  /// Lets the connection finish its streams and end; one that is not open yet ends at once.
  func drain() { eventLoop.execute { [self] in connection.value?.drain() } }

  /// Ends the connection; requests in flight fail as `closed`.
  func abort() { eventLoop.execute { [self] in connection.value?.abort() } }
}

/// The pool as its connections see it. Called on the connections' event loops.
protocol ClientConnectionOwner: AnyObject, Sendable {
  /// The peer's SETTINGS are in force. Called once, before the first `take`.
  func opened(_ id: Int, streamLimit: Int)

  /// Takes as many requests as `streamLimit` has room for; called at the end of every turn. If `more` is true, the
  /// connection asks again after the turn.
  func take(_ id: Int, openStreams: Int, streamLimit: Int, mayTake: Bool, now: NIODeadline) -> (
    batches: [RequestBatch], more: Bool
  )

  /// The first answer has arrived.
  func answered(_ id: Int)

  /// Returns requests that the peer guarantees not to have processed: `first` are sent before all others, `last` after
  /// them.
  func requeue(_ id: Int, first: [RequestBatch], last: [RequestBatch])

  /// The connection takes no more requests; may be called more than once. `isFailure`: the peer sent ENHANCE_YOUR_CALM,
  /// or closed the connection before any use.
  func draining(_ id: Int, isFailure: Bool)

  /// The connection has ended and all its requests are reported or returned; called exactly once. `error` is nil if
  /// this side closed it as planned. `isFailure`: it ended without an answer, early or with requests, or the peer sent
  /// ENHANCE_YOUR_CALM.
  func ended(_ id: Int, wasOpened: Bool, isFailure: Bool, error: HTTP2ConnectionError?)

  func observe(_ event: HTTP2PoolEvent)
}
