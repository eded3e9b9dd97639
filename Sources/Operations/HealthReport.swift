import FoundationEssentials

/// What the checks of a process said, in the order they were given in.
package struct HealthReport: Hashable, Sendable {
  /// One check's answer.
  package struct Check: Hashable, Sendable, Encodable {
    package let name: String
    /// What is wrong; nil when nothing is.
    package let complaint: String?
  }

  package let checks: [Check]

  /// Whether nothing is wrong.
  package var isGood: Bool { checks.allSatisfy { $0.complaint == nil } }

  /// The report as a JSON object: `status`, and every check with its complaint where it has one.
  func json(good: String, bad: String) throws -> String {
    struct Document: Encodable {
      let status: String
      let checks: [Check]
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(Document(status: isGood ? good : bad, checks: checks)), as: UTF8.self)
  }
}
