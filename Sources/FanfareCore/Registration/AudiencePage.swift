/// A part of an audience, found by walking a slice of the ids: see `DeviceRegistry.page`.
package struct AudiencePage: Hashable, Sendable {
  /// The devices of the audience, by ascending ids, each once.
  package let targets: [Target]
  /// How many candidates were looked at; those that belong to the audience are the targets.
  package let examined: Int
  /// The last candidate that was looked at, to go on behind it; nil when the slice has been looked through.
  package let last: RegistrationID?

  package init(targets: [Target], examined: Int, last: RegistrationID?) {
    self.targets = targets
    self.examined = examined
    self.last = last
  }
}
