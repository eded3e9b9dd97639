extension PushOutcome {
  /// The extent of an outcome: how far its consequences may reach.
  ///
  /// A registration chooses its handle, so a service's answer to it must never reach further than its scope says.
  ///
  /// | scope | outcomes | consequence |
  /// |---|---|---|
  /// | message | rejected, malformed | this push ends |
  /// | device | gone, throttled (4xx), its channel's host unreachable | this push ends or waits; a dead device is dropped |
  /// | credential | refused credential or configuration | alone: the push waits, then fails; everywhere: circuit opens |
  /// | service | no answer, no connection, 5xx | the push waits; many in a row: the circuit opens |
  /// | worker | the worker's own queue, deadline or shutdown | the push waits |
  package enum Scope: String, CaseIterable, Sendable {
    /// This push, whatever its device.
    case message
    /// This device: other devices of the service are not concerned.
    case device
    /// The credential or the app's configuration, unless other pushes with it are accepted: see the worker's
    /// `CredentialTrust`.
    case credential
    /// The service as a whole.
    case service
    /// Nothing outside this worker.
    case worker
  }

  /// The scope; nil for an accepted push.
  package var scope: Scope? {
    switch verdict {
    case .accepted: nil
    case .rejected, .malformed: .message
    case .deviceGone: .device
    case .reauthenticate, .configurationError: .credential
    case .unknown: .service
    case .retryHere, .retryLater:
      switch (status, reason) {
      case (500..., _): .service
      case (1..., _), (0, "HostUnreachable"): .device
      case (0, "QueueFull"), (0, "Closed"), (0, "Expired"): .worker
      default: .service
      }
    }
  }

  /// Whether it shows an outage of the service: no answer, no connection, or an error of its own.
  /// An overload of the service or of this worker does not.
  package var isOutage: Bool { scope == .service }

  /// Whether the service answered and did not object to the credential.
  /// An outcome without a status was decided by the sender itself and says nothing about the service.
  package var provesCredential: Bool {
    switch verdict {
    case .accepted: true
    case .rejected, .malformed, .deviceGone: status != 0
    case .retryHere, .retryLater, .reauthenticate, .configurationError, .unknown: false
    }
  }
}
