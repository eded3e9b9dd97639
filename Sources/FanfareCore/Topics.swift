/// The names of the topics, all under one prefix.
package struct Topics: Hashable, Sendable {
  /// What every name begins with, before the dot.
  package let prefix: String

  /// Send requests, keyed by username tag, or by the send's id where there is no single user.
  package let sends: String
  /// Slices of broadcasts, apart from the sends so that none waits behind them.
  package let segments: String
  /// What happened, keyed by the send's id.
  package let status: String
  /// What cannot be processed, keyed as it was.
  package let deadLetter: String
  /// What must wait, keyed as it was, shortest wait first; none where everything waits in the workers' memory.
  package let retries: [Retry]

  /// The topic of all that must wait about as long.
  package struct Retry: Hashable, Sendable {
    package let delay: Duration
    package let name: String
  }

  /// The delays of the retry topics unless configured otherwise, in seconds.
  package static let defaultRetryDelays = [15, 60, 300]

  /// The topics of a deployment; `fanfare` unless configured otherwise. The delays of the retry topics are whole
  /// seconds.
  package init(prefix: String = "fanfare", retryDelays: [Int] = []) {
    self.prefix = prefix
    retries = Set(retryDelays).sorted().map { Retry(delay: .seconds($0), name: "\(prefix).retry.\($0)s") }
    sends = prefix + ".sends"
    segments = prefix + ".segments"
    status = prefix + ".status"
    deadLetter = prefix + ".dead-letter"
  }

  /// The retry topics of this deployment among these names that are not configured, or not any more, shortest wait
  /// first. What lies there waits too.
  package func retired(among names: some Sequence<String>) -> [Retry] {
    let beginning = "\(prefix).retry."
    return names.compactMap { name -> Retry? in
      guard name.hasPrefix(beginning), name.hasSuffix("s"), !retries.contains(where: { $0.name == name }),
        let seconds = Int(name.dropFirst(beginning.count).dropLast()), (1...86_400).contains(seconds)
      else { return nil }
      return Retry(delay: .seconds(seconds), name: name)
    }.sorted { $0.delay < $1.delay }
  }

  /// Every topic there is, for `fanfare topics create`.
  package var all: [String] { [sends, segments, status, deadLetter] + retries.map(\.name) }
}

extension Topics {
  /// The topic for what must wait that long: the one with the shortest delay that is not shorter, or the longest there
  /// is. Nil without retry topics.
  package func retry(for delay: Duration) -> Retry? {
    retries.first { $0.delay >= delay } ?? retries.last
  }
}
