/// What a service does with one request.
struct Reaction: Sendable {
  /// How the request ends.
  enum Ending: Sendable {
    /// With an answer.
    case answer(ServiceAnswer)
    /// Not at all: the caller waits until it loses patience.
    case silence
    /// With the end of its connection.
    case dropConnection
    /// With RST_STREAM of that code; where there are no streams, as `dropConnection`.
    case reset(UInt32)
  }

  var ending: Ending
  /// What the answer waits for.
  var delay: Duration = .zero
  /// The connection is told to go away, before the answer.
  var goAway = false
  /// The stream limit that the connection gets.
  var streamLimit: Int?

  /// Answers at once.
  init(_ answer: ServiceAnswer) {
    ending = .answer(answer)
  }

  /// Ends as said.
  init(ending: Ending) {
    self.ending = ending
  }
}
