import Synchronization

/// Whether the member has asked to join its group again and does not know the new generation yet.
///
/// librdkafka keeps back whatever else is for the coordinator until it has been let in, and then sends it with the old
/// generation. A position that is refused for that makes it give up all partitions as lost (before 2.10,
/// librdkafka#4908). Its automatic commits keep out of that time; nothing but its log tells others when it is.
final class Membership: Sendable {
  private static let joining: Set<Substring> = ["init", "wait-join", "wait-metadata", "wait-sync"]
  private let joins = Atomic(false)

  /// Whether a commit would do harm now.
  var isJoining: Bool { joins.load(ordering: .acquiring) }

  /// Reads a line of librdkafka's log: `Group "g" changed join state steady -> wait-join (state up)`.
  func read(facility: String, text: String) {
    guard facility == "CGRPJOINSTATE" else { return }
    let words = text.split(separator: " ")
    guard let arrow = words.lastIndex(of: "->"), arrow + 1 < words.endIndex else { return }
    joins.store(Self.joining.contains(words[arrow + 1]), ordering: .releasing)
  }
}
