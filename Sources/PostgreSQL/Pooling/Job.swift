/// Something that needs a connection. Exactly one of the two closures is called, once.
struct Job: Sendable {
  /// Tells it from the others, for whoever takes it back.
  let number: UInt64
  /// When it has waited too long for a connection.
  let deadline: ContinuousClock.Instant
  /// Does it, on the slot's thread.
  let perform: @Sendable (Slot) -> Void
  /// Says why it is not done.
  let refuse: @Sendable (any Error) -> Void
}
