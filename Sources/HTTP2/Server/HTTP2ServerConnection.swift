package import NIOCore
import Synchronization

/// A client's connection as a handler sees it. Usable from any thread; commands of one thread are performed in order.
package final class HTTP2ServerConnection: Sendable {
  /// A command for the connection.
  enum Command: Sendable {
    /// Answer a stream.
    case respond(Int32, status: Int, headers: HTTP2Headers, body: [UInt8])
    /// Send RST_STREAM.
    case reset(Int32, HTTP2ErrorCode)
    /// Send GOAWAY.
    case goAway(lastStreamID: Int32?, HTTP2ErrorCode, debugData: [UInt8])
    /// Send SETTINGS with another stream limit.
    case setMaximumConcurrentStreams(Int)
    /// Close the connection.
    case close
  }

  /// The connection's number on its server, from 1.
  package let id: Int
  package let eventLoop: any EventLoop
  private let channel: NIOLoopBoundBox<ServerChannelHandler?>
  /// Commands from other threads, passed to the event loop together.
  private let mailbox = Mutex<[Command]>([])

  init(id: Int, eventLoop: any EventLoop) {
    self.id = id
    self.eventLoop = eventLoop
    channel = .makeEmptyBox(eventLoop: eventLoop)
  }

  /// Sends GOAWAY. Streams up to `lastStreamID` may still be answered, by default all that have arrived when the frame
  /// is written; higher ones are dropped. The connection closes with its last stream.
  package func goAway(lastStreamID: Int32? = nil, code: HTTP2ErrorCode = .noError, debugData: [UInt8] = []) {
    perform(.goAway(lastStreamID: lastStreamID, code, debugData: debugData))
  }

  /// Changes the limit of concurrent streams with a SETTINGS frame.
  package func setMaximumConcurrentStreams(_ limit: Int) { perform(.setMaximumConcurrentStreams(limit)) }

  /// Closes the TCP connection without GOAWAY.
  package func close() { perform(.close) }

  /// Sets or clears the channel handler.
  func bind(_ handler: ServerChannelHandler?) { channel.value = handler }

  /// Performs a command: at once on the event loop, otherwise with one hop for all waiting commands.
  func perform(_ command: Command) {
    if eventLoop.inEventLoop {
      channel.value?.perform([command])
      return
    }
    let isFirst = mailbox.withLock { mailbox in
      mailbox.append(command)
      return mailbox.count == 1
    }
    guard isFirst else { return }
    eventLoop.execute { [self] in
      let commands = mailbox.withLock { mailbox in
        defer { mailbox = [] }
        return mailbox
      }
      channel.value?.perform(commands)
    }
  }
}

/// A complete request.
package struct HTTP2ServerRequest: Sendable {
  /// `:method`.
  package var method = ""
  /// `:path`.
  package var path = ""
  /// `:authority`, empty if the client sent none.
  package var authority = ""
  /// All fields except pseudo fields, in order.
  package var headers = HTTP2Headers()
  package var body: [UInt8] = []
  package var streamID: Int32

  package init(streamID: Int32) { self.streamID = streamID }
}

/// Answers one request, once, from any thread. Answers to streams that have ended are dropped.
package struct HTTP2Responder: Sendable {
  package let connection: HTTP2ServerConnection
  private let streamID: Int32

  init(connection: HTTP2ServerConnection, streamID: Int32) {
    self.connection = connection
    self.streamID = streamID
  }

  /// Sends the answer. Without a body, the header block ends the stream.
  package func respond(status: Int, headers: HTTP2Headers = HTTP2Headers(), body: [UInt8] = []) {
    connection.perform(.respond(streamID, status: status, headers: headers, body: body))
  }

  /// Ends the stream with RST_STREAM instead of an answer.
  package func reset(_ code: HTTP2ErrorCode) { connection.perform(.reset(streamID, code)) }
}
