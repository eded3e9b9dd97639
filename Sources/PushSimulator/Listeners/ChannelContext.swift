import Hummingbird
import NIOCore

/// A request's context that knows its connection, for the faults that break it.
struct ChannelContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
  }
}
