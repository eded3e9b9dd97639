/// A pool at one moment.
package struct HTTP2PoolStatistics: Sendable, Hashable {
  /// Usable connections, those that only finish their streams not counted.
  package var connections = 0
  /// Connections being set up.
  package var connecting = 0
  /// Connections that take no new request and end with their last stream.
  package var draining = 0
  /// Requests on their way on all connections, as of each connection's last turn.
  package var openStreams = 0
  /// Requests waiting for a stream.
  package var queued = 0
  /// The sum of the stream limits of all usable connections.
  package var streamLimit = 0

  /// An empty pool.
  package init() {}
}
