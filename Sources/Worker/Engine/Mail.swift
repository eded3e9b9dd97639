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

  /// What the stores said to a question about a broadcast.
  struct Answered: Sendable {
    let answer: BroadcastAnswer
    /// Why there is none; nil where there is.
    let failure: String?
  }

  /// What became of a request to drop devices.
  struct Dropped: Sendable {
    let requested: [Effects.Drop]
    /// nil when the registry could not be asked.
    let dropped: [RegistrationID]?
  }

  /// What the group says that it has committed.
  struct Resumed: Sendable {
    /// Of the question.
    let number: Int
    /// nil when the group could not be asked.
    let committed: [PartitionOffset]?
    /// What it has refused most recently; it may be older.
    let kept: [PartitionOffset]
  }

  /// What became of a commit.
  struct Committed: Sendable {
    let offsets: [PartitionOffset]
    /// nil when the broker has them.
    let error: RDKafkaError?
  }

  var events: [ConsumerEvent] = []
  var pushed: [Pushed] = []
  var acknowledged: [Acknowledgement] = []
  var lookedUp: [LookedUp] = []
  var answered: [Answered] = []
  var dropped: [Dropped] = []
  var resumed: [Resumed] = []
  var committed: [Committed] = []
  var hasTicked = false
  var isToShutDown = false
  /// Whether the consumer's events are over.
  var hasEnded = false
}
