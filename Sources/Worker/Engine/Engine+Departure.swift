import Logging
import RDKafka

extension Engine {
  /// The steps by which a worker leaves, in their order.
  enum Departure {
    /// It works, or settles what is in flight.
    case none
    /// Everything is settled, and the positions are to be committed: a group that is between two assignments refuses that for a while.
    case commitDue
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
        if error.code == .rebalancing || error.isRetriable, now.uptime < state.shutdownDeadline ?? 0 {
          departure = .commitDue
        } else {
          logger.warning("The last positions could not be committed", metadata: [LogKeys.error: "\(error)"])
        }
      }
      if case .leaving = departure { leave(in: &group) }
    }
    // Tried with every tick, with what is owned by then.
    guard case .commitDue = departure, hasDrained || mail.hasTicked else { return }
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
