import NIOCore

/// A connection as the pool holds it, usable from every thread.
final class ConnectionHandle: Sendable {
  let id: Int
  private let eventLoop: any EventLoop
  private let connection: NIOLoopBoundBox<ClientConnection?>

  init(id: Int, eventLoop: any EventLoop) {
    self.id = id
    self.eventLoop = eventLoop
    connection = .makeEmptyBox(eventLoop: eventLoop)
  }

  func connect(settings: ClientConnectionSettings, owner: any ClientConnectionOwner) {
    eventLoop.execute { [self] in
      let opening = ClientConnection(id: id, settings: settings, eventLoop: eventLoop, owner: owner)
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
