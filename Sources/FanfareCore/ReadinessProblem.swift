/// Why a process cannot do its job, in words without secrets.
package struct ReadinessProblem: Hashable, Sendable {
  package let text: String
  /// The hubs that it concerns, whose operators may read it; nil if it concerns all.
  package let hubs: Set<HubName>?

  package init(_ text: String, hubs: Set<HubName>? = nil) { (self.text, self.hubs) = (text, hubs) }
}
