/// An answer to a `SendQuery`.
package struct SendPage: Hashable, Sendable {
  /// The newest first. Without each device's result.
  package let sends: [SendReport]
  /// After which send the next page begins; nil when there is no further one. A page may have fewer sends than were
  /// asked for, or none, and be followed by another one: a store looks at a bounded number of sends at a time.
  package let next: SendQuery.Position?

  package init(sends: [SendReport], next: SendQuery.Position?) {
    self.sends = sends
    self.next = next
  }
}
