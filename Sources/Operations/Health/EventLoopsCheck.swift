package import NIOCore

/// Whether every event loop of a group still takes its turn. A loop that is blocked serves none of its connections and
/// recovers by no means but a restart: a matter of liveness.
package struct EventLoopsCheck: ReadinessCheck {
  package let name: String
  private let group: any EventLoopGroup

  /// A check of that group.
  package init(group: any EventLoopGroup, name: String = "event loops") {
    self.group = group
    self.name = name
  }

  /// Returns when every loop has run one task of ours; a loop that does not is found out by the time limit of the
  /// caller.
  package func complaint() async -> String? {
    // All at once: it takes as long as the slowest loop, however many there are.
    let turns = group.makeIterator().map { $0.submit {} }
    do {
      for turn in turns { try await turn.get() }
      return nil
    } catch {
      return "an event loop does not take tasks"
    }
  }
}
