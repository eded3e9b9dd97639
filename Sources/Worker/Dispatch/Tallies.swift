import FanfareCore

/// What happened in one turn, for the metrics: small values in arrays, counted outside the state machine.
struct Tallies: Sendable {
  /// One device's result.
  struct Result: Sendable {
    let sender: Int
    let outcome: DeviceResult.Outcome
    let reason: String
    /// From acceptance to the result, in milliseconds; never negative.
    let latency: Int64
  }

  /// One attempt that is to be repeated.
  struct Retry: Sendable {
    let sender: Int
    let reason: String
  }

  /// One send's end.
  struct Settled: Hashable, Sendable {
    let hub: Int
    let state: StatusRecord.State
  }

  /// Sends whose first push was handed over, by hub.
  var dispatched: [Int] = []
  var results: [Result] = []
  var retries: [Retry] = []
  /// Pushes put off, by sender.
  var deferrals: [Int] = []
  var settled: [Settled] = []
  /// Pages of broadcasts that have ended, by hub.
  var pages: [Int] = []
  var deadLetters: [DeadLetter.Reason] = []
  /// Records that an earlier owner of their partition had settled.
  var skipped = 0
}
