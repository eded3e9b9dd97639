/// Which defaults a client starts from; every value can be changed afterwards.
package enum Tuning: Sendable, Hashable {
  /// A real cluster: the broker wakes a waiting fetch as soon as there is data, sessions outlast a pause of some
  /// seconds.
  case production
  /// The embedded cluster, where every rebalance lasts the session timeout less one second and a fetch without data
  /// always sleeps its full waiting time: short sessions, short fetches.
  case embedded
}
