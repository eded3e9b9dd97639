import Logging
import RDKafka

extension Engine {
  /// The steps by which a worker leaves, in their order.
  enum Departure {
    /// It works, or settles what is in flight.
    case none
    /// Everything is settled, and the positions are to be committed with the next tick.
    case commitDue
    /// The group is between two assignments and refuses positions until it has been heard of again. Trying meanwhile would do harm: librdkafka
    /// before 2.10 takes a refused generation for the loss of all partitions.
    case waitingForGroup
    /// They are being committed.
    case committing
    /// It leaves the group.
    case leaving
  }

  /// Takes the next step once everything has drained: the group must have the positions before the worker leaves it, or others would do again
  /// what is done. Leaving does commit, but only once, and a broker may refuse it just then.
  mutating func depart(_ mail: Mail, hasDrained: Bool, at now: Moment, in group: inout DiscardingTaskGroup) {
    if hasDrained, case .none = departure { departure = .commitDue }
    if let result = mail.lastCommit {
      departure = .leaving
      if case .failure(let error) = result {
        if error.isRetriable, now.uptime < state.shutdownDeadline ?? 0 {
          departure = error.code == .rebalancing ? .waitingForGroup : .commitDue
        } else {
          logger.warning("The last positions could not be committed", metadata: [LogKeys.error: "\(error)"])
        }
      }
      if case .leaving = departure { leave(in: &group) }
    }
    switch departure {
    case .commitDue where hasDrained || mail.hasTicked: commitPositions(in: &group)
    case .waitingForGroup where mail.events.contains(where: \.isAssignment): commitPositions(in: &group)
    case .waitingForGroup where now.uptime >= state.shutdownDeadline ?? 0:
      departure = .leaving
      leave(in: &group)
    default: break
    }
  }

  /// With what is owned by now.
  private mutating func commitPositions(in group: inout DiscardingTaskGroup) {
    departure = .committing
    let (source, mailbox, positions) = (source, mailbox, state.ledger.positions)
    group.addTask {
      var result = Result<Void, RDKafkaError>.success(())
      do throws(RDKafkaError) { try await source.commit(positions) } catch { result = .failure(error) }
      let end = result
      mailbox.post { $0.lastCommit = end }
    }
  }

  private func leave(in group: inout DiscardingTaskGroup) {
    let source = source
    group.addTask { await source.close() }
  }
}

extension ConsumerEvent {
  /// Whether the group has come to a new assignment, which it says even where this member gets nothing.
  fileprivate var isAssignment: Bool {
    if case .assigned = self { true } else { false }
  }
}
