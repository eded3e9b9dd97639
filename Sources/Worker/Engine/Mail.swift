import FanfareCore
import RDKafka

/// What has gathered for the engine since its last turn, in batches as it came.
struct Mail: Sendable {
  /// Answers of one sender.
  struct Pushed: Sendable {
    let sender: Int
    let results: [PushResult]
  }

  /// The registry's answer to a question, and how long it took.
  struct LookedUp: Sendable {
    let answer: LookUpAnswer
    let duration: Duration
    /// Why there is none; nil where there is.
    let failure: String?
  }

  /// What became of a request to drop devices.
  struct Dropped: Sendable {
    let requested: [Effects.Drop]
    /// nil when the registry could not be asked.
    let dropped: [RegistrationID]?
  }

  var events: [ConsumerEvent] = []
  var pushed: [Pushed] = []
  var acknowledged: [Acknowledgement] = []
  var lookedUp: [LookedUp] = []
  var dropped: [Dropped] = []
  /// How the last commit before the end went; nil where there was none since.
  var lastCommit: Result<Void, RDKafkaError>?
  var hasTicked = false
  var isToShutDown = false
  /// Whether the consumer's events are over.
  var hasEnded = false
}
