import FanfareCore
import RDKafka
import Synchronization

/// The events gathered for the engine since its last turn, in batches as they arrived.
struct Mail: Sendable {
  /// Outcomes of one sender.
  struct Pushed: Sendable {
    let sender: Int
    let results: [PushResult]
  }

  /// The registry's answer, and how long it took.
  struct LookedUp: Sendable {
    let answer: LookUpAnswer
    let duration: Duration
    /// The error when there is no answer.
    let failure: String?
  }

  /// The store's answer about a broadcast or quota.
  struct Answered: Sendable {
    let answer: BroadcastAnswer
    /// The error when there is no answer.
    let failure: String?
  }

  /// The end of a request to unregister devices.
  struct Unregistered: Sendable {
    let requested: [Effects.Unregistration]
    /// The devices that were unregistered; nil if the registry could not be asked.
    let devices: [RegistrationID]?
  }

  var events: [ConsumerEvent] = []
  var pushed: [Pushed] = []
  var acknowledged: [Acknowledgement] = []
  var lookedUp: [LookedUp] = []
  var answered: [Answered] = []
  var unregistered: [Unregistered] = []
  var recovered: [OffsetAnswer] = []
  var committed: [CommitEnd] = []
  var hasTicked = false
  var isToShutDown = false
  /// Whether the consumer's events have ended.
  var hasEnded = false
}

/// Gathers the events of other threads for the engine: one lock per batch, one wake-up per turn.
final class Mailbox: Sendable {
  private struct State: Sendable {
    var mail = Mail()
    var isEmpty = true
    var reader: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  /// Adds events, and wakes the engine if it sleeps. From any thread.
  func post(_ add: (inout Mail) -> Void) {
    let reader = state.withLock { state in
      add(&state.mail)
      state.isEmpty = false
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume()
  }

  /// The events since the last call; suspends until there are some.
  /// For one caller. Only a post wakes it: code that cancels the caller must post, too.
  func next() async -> Mail {
    await withCheckedContinuation { continuation in
      let isEmpty = state.withLock { state in
        if state.isEmpty { state.reader = continuation }
        return state.isEmpty
      }
      if !isEmpty { continuation.resume() }
    }
    return state.withLock { state in
      defer {
        state.mail = Mail()
        state.isEmpty = true
      }
      return state.mail
    }
  }
}
