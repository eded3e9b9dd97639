import FanfareCore
import RDKafka
import Roles

/// Checks this client's rights to the topics that the roles use.
///
/// A client may rarely list the ACLs, so the rights are tried. Only a record could show whether it may write.
struct RightsCheck {
  private static let area = "rights"

  let reader: LogReader
  let topics: Topics
  let roles: Set<ConfigurationCheck.Role>

  /// The topics that the roles read; and all that they use.
  private var needs: (read: Set<String>, all: Set<String>) {
    var (reads, writes): (Set<String>, Set<String>) = ([], [topics.pulse])
    for role in roles {
      switch role {
      case .api:
        reads.formUnion([topics.deadLetter, topics.pulse])
        writes.formUnion(topics.ingress.isEmpty ? [topics.sends] : topics.ingress)
      case .worker:
        reads.formUnion([topics.sends, topics.segments] + topics.retries.map(\.name) + topics.ingress)
        writes.formUnion([topics.status, topics.deadLetter])
      case .ledger: reads.formUnion([topics.sends, topics.status])
      case .hooks: reads.insert(topics.status)
      }
    }
    return (reads, reads.union(writes))
  }

  /// The topics that this client may not see, and the findings.
  func findings() async -> (hidden: Set<String>, findings: [CheckResult]) {
    let needs = needs
    var problems: [(topic: String, right: String)] = []
    await withTaskGroup(of: (topic: String, right: String)?.self) { group in
      for topic in needs.all {
        group.addTask {
          await missingRight(on: topic, reads: needs.read.contains(topic)).map { (topic: topic, right: $0) }
        }
      }
      for await case let problem? in group { problems.append(problem) }
    }
    problems.sort { $0.topic < $1.topic }
    guard !problems.isEmpty else {
      let text = "this client may see and read the topics that it needs; whether it may write, only a record shows"
      return ([], [.ok(Self.area, text)])
    }
    let findings = problems.map {
      CheckResult.wrong(
        Self.area, "this client may not \($0.right == "READ" ? "read" : "see") \($0.topic)",
        remedy: "grant \($0.right) on it; the article on security lists the permissions of each role")
    }
    return (Set(problems.filter { $0.right == "DESCRIBE" }.map(\.topic)), findings)
  }

  private func missingRight(on topic: String, reads: Bool) async -> String? {
    var right = "DESCRIBE"
    do throws(RDKafkaError) {
      try await reader.require(topic)
      right = "READ"
      if reads { try await reader.tryReading(topic) }
    } catch {
      // Other checks report a missing topic and a silent cluster.
      return error.code == .unauthorized ? right : nil
    }
    return nil
  }
}
