import NIOCore
import NIOHTTP1

extension ChannelHandlerContext {
  /// Does something as soon as the answers given so far are written, or cannot be: when no bytes at all, put behind
  /// them, are. To be called on the event loop, and done there, once.
  func whenWritten(_ act: @escaping (ChannelHandlerContext) -> Void) {
    let written = eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { _ in act(self) }
    do {
      let encoder = try pipeline.syncOperations.context(handlerType: HTTPResponseEncoder.self)
      encoder.writeAndFlush(NIOAny(ByteBuffer()), promise: written)
    } catch {
      // The connection has gone, and its handlers with it.
      written.fail(error)
    }
  }
}
