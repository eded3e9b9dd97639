/// How much one sender may post to a hub: each line of a batch counts as a send.
package struct SendQuota: Hashable, Sendable {
  /// Sends in a second, in the long run; at least 1.
  package let perSecond: Int
  /// Sends at once, after a pause; at least 1.
  package let burst: Int

  package init(perSecond: Int, burst: Int) {
    self.perSecond = max(1, perSecond)
    self.burst = max(1, burst)
  }
}
