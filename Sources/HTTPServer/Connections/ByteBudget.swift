import Synchronization

/// The bytes that one kind of data of all connections together may occupy, shared among the networks of clients.
/// Thread-safe.
///
/// A network may hold as many bytes as remain free (the dynamic threshold of shared-memory switches, Choudhury and
/// Hahne 1998): one alone gets half of the limit, and each further one finds room. It may always hold `largest`.
package final class ByteBudget: Sendable {
  private struct State {
    var used = 0
    var perNetwork: [ClientAddress: Int] = [:]
  }

  private let limit: Int
  /// The most bytes of one owner.
  let largest: Int
  private let state = Mutex(State())

  /// `largest` is at most the limit.
  package init(limit: Int, largest: Int) { (self.limit, self.largest) = (limit, largest) }

  /// Takes bytes, to be released by their owner. Returns false, and takes none, if they exceed the limit or the
  /// network's share of it.
  func take(_ bytes: Int, of network: ClientAddress) -> Bool {
    state.withLock { state in
      let (used, held) = (state.used + bytes, state.perNetwork[network, default: 0] + bytes)
      guard used <= limit, held <= max(limit - used, largest) else { return false }
      state.used = used
      state.perNetwork[network] = held
      return true
    }
  }

  /// Releases bytes that were taken for the network.
  func release(_ bytes: Int, of network: ClientAddress) {
    state.withLock { state in
      let rest = state.perNetwork[network, default: 0] - bytes
      state.used -= bytes
      state.perNetwork[network] = rest > 0 ? rest : nil
    }
  }

  /// The bytes that are taken.
  package var taken: Int { state.withLock { $0.used } }
}

/// The budgets of a listener's connections.
package struct ByteBudgets: Sendable {
  /// Of request bodies that are read or whose requests are being answered.
  package let bodies: ByteBudget
  /// Of answers that clients have not taken yet.
  package let answers: ByteBudget

  package init(bodies: ByteBudget, answers: ByteBudget) { (self.bodies, self.answers) = (bodies, answers) }
}

/// The bytes of the budget that one answer holds until the client has taken it.
struct AnswerCharge {
  /// Shorter answers are not counted, so that an ordinary one costs no atomic operation.
  private static let uncountedBytes = 1024

  private let budget: ByteBudget
  private var taken = 0
  private var network = ClientAddress.unknown

  init(_ budget: ByteBudget) { self.budget = budget }

  /// Charges an answer to a network, and releases an earlier charge. Returns false if the budget has no room.
  ///
  /// An answer that is larger than the largest share is charged as the largest share; otherwise it could never be sent.
  mutating func take(_ bytes: Int, of network: @autoclosure () -> ClientAddress) -> Bool {
    release()
    guard bytes > Self.uncountedBytes else { return true }
    let (bytes, network) = (min(bytes, budget.largest), network())
    guard budget.take(bytes, of: network) else { return false }
    (taken, self.network) = (bytes, network)
    return true
  }

  mutating func release() {
    if taken > 0 { budget.release(taken, of: network) }
    taken = 0
  }
}
