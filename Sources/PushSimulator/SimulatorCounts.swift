/// What the simulator has answered since it started or was last reset. Exact, whatever the store has let go of.
package struct SimulatorCounts: Hashable, Sendable {
  /// The answers of one service.
  package struct Service: Hashable, Sendable {
    /// Pushes or token requests that were accepted.
    package var accepted = 0
    /// Accepted pushes whose device had accepted the same push before.
    package var duplicates = 0
    /// How often each answer was given: `200`, `410 Unregistered`, and what was none: `silence`, `connection dropped`.
    package var answers: [String: Int] = [:]
  }

  package var services: [SimulatedService: Service] = [:]
  /// Devices in the store.
  package var devices = 0

  /// The answers of a service; zeroes where there were none.
  package subscript(service: SimulatedService) -> Service { services[service] ?? Service() }

  /// Pushes accepted on all platforms.
  package var accepted: Int { self[.apns].accepted + self[.fcm].accepted + self[.wns].accepted }
  /// Duplicates accepted on all platforms.
  package var duplicates: Int { self[.apns].duplicates + self[.fcm].duplicates + self[.wns].duplicates }
}
