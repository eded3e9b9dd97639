/// Something that must be in order for a process to do its job. Asked whenever somebody asks for the process's health.
package protocol ReadinessCheck: Sendable {
  /// What is checked, as operators read it: `kafka`, `registry`. The same for the life of the check.
  var name: String { get }

  /// What is wrong, without anything secret in it; nil when nothing is. Never called again while a call is under way;
  /// whoever asked stops waiting after the registry's time limit.
  func complaint() async -> String?
}

/// A check made of a closure.
package struct NamedCheck: ReadinessCheck {
  package let name: String
  private let ask: @Sendable () async -> String?

  /// Asks the closure, which has the contract of `ReadinessCheck.complaint()`.
  package init(_ name: String, complaint: @escaping @Sendable () async -> String?) {
    self.name = name
    ask = complaint
  }

  package func complaint() async -> String? { await ask() }
}
