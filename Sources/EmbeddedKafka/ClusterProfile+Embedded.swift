package import RDKafka

extension ClusterProfile {
  /// The embedded cluster: every rebalance takes the session timeout less one second, and a fetch without data always
  /// takes its full waiting time. It refuses commits from the first member that joins again until the last.
  package static var embedded: ClusterProfile {
    var profile = ClusterProfile()
    profile.reconnectBackoff = .milliseconds(20)
    profile.maximumReconnectBackoff = .milliseconds(250)
    profile.deliveryTimeout = .seconds(10)
    profile.sessionTimeout = .seconds(6)
    profile.heartbeatInterval = .milliseconds(500)
    profile.autoCommitInterval = .milliseconds(250)
    profile.fetchWait = .milliseconds(10)
    profile.fetchErrorBackoff = .milliseconds(50)
    profile.rebalanceDelay = CommonDelay.self
    return profile
  }

  package var isEmbedded: Bool { rebalanceDelay != nil }
}
