/// A deferred work item: the record of the retry topics and, once it is due, of the sends topic.
///
/// A work item is deferred when some of its devices must wait longer than a worker keeps a push in memory. The record
/// stands for one part of a send (see `StatusRecord`). No status record of that part is written before its last device
/// has a result, so the part is counted once however often it is deferred.
package struct RetryRecord: Hashable, Sendable {
  /// The send, as it was accepted, but with the rate that its broadcast has since been given.
  package private(set) var send: SendRequest
  /// The number of the part: less than `parts`, 0 for a send with one item.
  package let part: Int
  /// The number of parts of the send.
  package let parts: Int
  /// The attempt that the part belongs to; nil for a send with one item.
  package let attempt: DispatchID?
  /// How often the part was deferred, this time included.
  package let deferrals: Int
  /// Whether it had been readmitted before it was due when it was deferred this time.
  ///
  /// Then the clock of the process that held it is ahead of the writer's, and only the writer's clock determines how
  /// long it is held.
  package let cameEarly: Bool
  /// When it was written, by the writer's clock, but not after the `now` given to `decode`. nil if
  /// the record was not decoded, or has no time.
  package var writtenAt: UnixTime?
  /// The part's devices, in the order of dispatch.
  package internal(set) var devices: [Device]
  /// The results of devices of the part that `devices` does not list.
  package let counts: OutcomeCounts
  /// When the part passed through its stages in earlier rounds.
  package let times: SendTimes

  /// The state of one device.
  package enum Device: Hashable, Sendable {
    /// The device has its result.
    case done(DeviceResult)
    /// The device waits for its next push.
    case waiting(Waiting)
  }

  /// A device that waits for its next push, and the history of its attempts.
  ///
  /// Its handle is looked up again when it is due, because it may belong to another user by then.
  package struct Waiting: Hashable, Sendable {
    package let registration: RegistrationID
    package let platform: Platform
    /// The earliest moment of the next push.
    package internal(set) var notBefore: UnixTime
    /// The number of attempts.
    package let attempts: Int
    /// The number of attempts that do not count against the limit, because the service was
    /// unavailable.
    package let heldAttempts: Int
    /// How often the device has waited for an unavailable service.
    package let waits: Int
    /// Whether an attempt had no answer, so that the device may have received the push.
    package let wasUnanswered: Bool
    /// When the first attempt was made; nil before it.
    package internal(set) var firstAttemptAt: UnixTime?
    /// The reason of the last answer.
    package let reason: String
    /// The HTTP status of the last answer; 0 if there was none.
    package let status: Int
    /// How often the service reported a sender error for this device while other pushes of the
    /// sender succeeded.
    package let contradictions: Int

    package init(
      registration: RegistrationID, platform: Platform, notBefore: UnixTime, attempts: Int, heldAttempts: Int,
      waits: Int, wasUnanswered: Bool, firstAttemptAt: UnixTime?, reason: String, status: Int, contradictions: Int = 0
    ) {
      self.registration = registration
      self.platform = platform
      self.notBefore = notBefore
      self.attempts = attempts
      self.heldAttempts = heldAttempts
      self.waits = waits
      self.wasUnanswered = wasUnanswered
      self.firstAttemptAt = firstAttemptAt
      self.reason = reason
      self.status = status
      self.contradictions = contradictions
    }
  }

  package init(
    send: SendRequest, part: Int, parts: Int, attempt: DispatchID?, deferrals: Int, cameEarly: Bool = false,
    devices: [Device], counts: OutcomeCounts = OutcomeCounts(), times: SendTimes = SendTimes()
  ) {
    self.send = send
    self.part = part
    self.parts = parts
    self.attempt = attempt
    self.deferrals = deferrals
    self.cameEarly = cameEarly
    self.devices = devices
    self.counts = counts
    self.times = times
  }

  /// Takes over a rate that the broadcast has been given.
  package mutating func follow(_ rate: BroadcastRate) {
    guard send.maximumPerSecond != rate.perSecond else { return }
    send = send.with { $0.maximumPerSecond = rate.perSecond }
  }

  /// When the first waiting device is due; the time of acceptance when none waits.
  package var notBefore: UnixTime {
    devices.compactMap { if case .waiting(let device) = $0 { device.notBefore } else { nil } }.min() ?? send.acceptedAt
  }

  /// Identifies the record. Equal however often the same deferral is written.
  package var identity: SendID {
    // The multipliers spread small numbers over the words (Knuth's and Weyl's constants).
    let number = UInt64(truncatingIfNeeded: part) &* 0x9E37_79B9_7F4A_7C15
    let count = UInt64(truncatingIfNeeded: deferrals) &* 0xD1B5_4A32_D192_ED03
    let id = send.identity
    // Multiplied, because the attempt of a broadcast has the send's id: XOR alone would cancel it.
    let (high, low) = ((attempt?.high ?? 0) &* 0xBF58_476D_1CE4_E5B9, (attempt?.low ?? 0) &* 0x94D0_49BB_1331_11EB)
    return SendID(high: id.high ^ high ^ count, low: id.low ^ low ^ number)
  }
}
