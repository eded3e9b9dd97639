/// The names of a deployment's topics, which share a prefix.
package struct Topics: Hashable, Sendable {
  /// The common prefix without its dot.
  package let prefix: String

  /// Send requests. Key: the username tag, or the send's id if there is no single user.
  package let sends: String
  /// Segments of broadcasts, in a topic of their own so that a broadcast does not delay single
  /// sends.
  package let segments: String
  /// Status records. Key: the send's id.
  package let status: String
  /// Records that cannot be processed, with their original keys.
  package let deadLetter: String
  /// The reports of all processes about themselves, once a second; compacted. Key: the process's id.
  package let pulse: String
  /// Deferred records with their original keys, by ascending delay; at least one.
  package let retries: [Retry]
  /// The hubs with an ingress topic, for sends of that hub alone; empty if all sends are produced to ``sends``.
  package var ingressHubs: Set<HubName> = []

  /// A retry topic, for records that are deferred for about its delay.
  package struct Retry: Hashable, Sendable {
    package let delay: Duration
    package let name: String
  }

  /// The default delays of the retry topics in seconds.
  package static let defaultRetryDelays = [15, 60, 300]

  /// The topics of a deployment. `retryDelays` are in seconds, at least one.
  package init(prefix: String = "fanfare", retryDelays: [Int] = Topics.defaultRetryDelays) {
    precondition(!retryDelays.isEmpty)
    self.prefix = prefix
    retries = Set(retryDelays).sorted().map { Retry(delay: .seconds($0), name: "\(prefix).retry.\($0)s") }
    sends = prefix + ".sends"
    segments = prefix + ".segments"
    status = prefix + ".status"
    deadLetter = prefix + ".dead-letter"
    pulse = prefix + ".pulse"
  }

  /// The retry topics among `names` that this deployment no longer configures, by ascending delay.
  /// They may still hold deferred records.
  package func retired(among names: some Sequence<String>) -> [Retry] {
    let beginning = "\(prefix).retry."
    return names.compactMap { name -> Retry? in
      guard name.hasPrefix(beginning), name.hasSuffix("s"), !retries.contains(where: { $0.name == name }),
        let seconds = Int(name.dropFirst(beginning.count).dropLast()), (1...86_400).contains(seconds)
      else { return nil }
      return Retry(delay: .seconds(seconds), name: name)
    }.sorted { $0.delay < $1.delay }
  }

  /// The topics of sends and of what becomes of them.
  package var all: [String] { [sends, segments, status, deadLetter] + retries.map(\.name) + ingress }

  /// All topics, for `fanfare topics create`. A role works without ``pulse``.
  package var created: [String] { all + [pulse] }

  /// The ingress topics, by name.
  package var ingress: [String] { ingressHubs.map { ingress(of: $0) }.sorted() }

  /// The name of a hub's ingress topic.
  package func ingress(of hub: HubName) -> String { "\(sends).\(hub)" }

  /// The topic to which a front end produces the sends of a hub.
  package func intake(of hub: HubName) -> String {
    // Nearly always empty: costs nothing then.
    ingressHubs.isEmpty || !ingressHubs.contains(hub) ? sends : ingress(of: hub)
  }

  /// The retry topic for a delay: the shortest one that is not shorter, else the longest.
  package func retry(for delay: Duration) -> Retry {
    retries.first { $0.delay >= delay } ?? retries[retries.count - 1]
  }
}
