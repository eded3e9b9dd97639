/// The properties of a cluster that the clients' default settings depend on.
///
/// The defaults are those of a real cluster. A broker for development has a profile of its own.
package struct ClusterProfile: Sendable, Hashable {
  /// The first wait before a broken connection is opened again, and the longest.
  package var reconnectBackoff: Duration = .milliseconds(100)
  package var maximumReconnectBackoff: Duration = .seconds(2)
  /// The default of ``ProducerConfiguration/deliveryTimeout``.
  package var deliveryTimeout: Duration = .seconds(20)
  /// The default of ``ConsumerConfiguration/sessionTimeout``.
  package var sessionTimeout: Duration = .seconds(15)
  /// The default of ``ConsumerConfiguration/heartbeatInterval``.
  package var heartbeatInterval: Duration = .seconds(3)
  /// The default of ``ConsumerConfiguration/autoCommitInterval``.
  package var autoCommitInterval: Duration = .seconds(1)
  /// The default of ``ConsumerConfiguration/fetchWait``.
  package var fetchWait: Duration = .milliseconds(100)
  /// The wait after a failed fetch; nil means librdkafka's default of 500 ms.
  package var fetchErrorBackoff: Duration?
  /// Whether a group accepts commits during a rebalance until all members have joined again, as real clusters do.
  /// Otherwise a consumer delays its part of the rebalance, see `Stillness`, and keeps refused positions, see `Refuge`.
  package var acceptsCommitsDuringRebalance = true

  package init() {}
}
