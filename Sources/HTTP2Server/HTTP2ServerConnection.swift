package import HTTP2Client
package import NIOCore
import Synchronization

/// One client's connection as a handler sees it; usable from any thread. Commands of one thread are carried out in
/// order.
package final class HTTP2ServerConnection: Sendable {
  /// What a connection can be told to do.
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

  /// The number of the connection on its server, from 1.
  package let id: Int
  /// The event loop the connection lives on.
  package let eventLoop: any EventLoop
  private let channel: NIOLoopBoundBox<ServerChannelHandler?>
  /// Commands from other threads, carried to the event loop together.
  private let mailbox = Mutex<[Command]>([])

  /// A connection that is not tied to its channel yet.
  init(id: Int, eventLoop: any EventLoop) {
    self.id = id
    self.eventLoop = eventLoop
    channel = .makeEmptyBox(eventLoop: eventLoop)
  }

  /// Sends GOAWAY. Streams up to `lastStreamID` may still be answered, nil means all that have arrived when the frame
  /// is written; higher ones are dropped. The connection closes when the last stream has ended.
  package func goAway(lastStreamID: Int32? = nil, code: HTTP2ErrorCode = .noError, debugData: [UInt8] = []) {
    perform(.goAway(lastStreamID: lastStreamID, code, debugData: debugData))
  }

  /// Changes the stream limit with a SETTINGS frame.
  package func setMaximumConcurrentStreams(_ limit: Int) { perform(.setMaximumConcurrentStreams(limit)) }

  /// Closes the TCP connection without a word.
  package func close() { perform(.close) }

  /// Ties the connection to its channel's handler, or unties it.
  func bind(_ handler: ServerChannelHandler?) { channel.value = handler }

  /// Carries out a command: at once on the event loop, otherwise with one hop for all that are waiting.
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
