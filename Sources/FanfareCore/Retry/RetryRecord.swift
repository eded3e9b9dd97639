/// What is left of a work item some of whose devices must wait longer than a worker keeps a push: the record of the
/// retry topics, and, once its time has come, of the sends topic.
///
/// It stands for one part of a send (see `StatusRecord`), and no status record of that part is written before the last
/// of its devices has its result: however often it is put off, the part is counted once.
package struct RetryRecord: Hashable, Sendable {
  /// The send, as it was accepted.
  package let send: SendRequest
  /// Which part of the send: less than `parts`, 0 for a send that is one item.
  package let part: Int
  /// How many parts the send has.
  package let parts: Int
  /// To which attempt at the send the part belongs; nil for a send that is one item.
  package let attempt: AttemptID?
  /// How often the part was put off, this time included.
  package let deferrals: Int
  /// Whether it had come back before its time when it was put off this time: the clock of whoever held it is ahead of
  /// that of whoever wrote it, and the time to hold it goes by the writer's alone.
  package let cameEarly: Bool
  /// When it was written, by the writer's clock, or when it was read where that is earlier and was said to `decode`;
  /// nil of one that was not read, or does not say.
  package var writtenAt: UnixTime?
  /// The part's devices, in the order of dispatch.
  package let devices: [Device]
  /// How further devices of the part ended, which are not in `devices`.
  package let counts: OutcomeCounts

  /// How far the part has come on one device.
  package enum Device: Hashable, Sendable {
    /// It has its result.
    case done(DeviceResult)
    /// It is to be pushed to.
    case waiting(Waiting)
  }

  /// A device that is to be pushed to, and what was tried before. Its handle is looked up again: it may be somebody
  /// else's by then.
  package struct Waiting: Hashable, Sendable {
    package let registration: RegistrationID
    package let platform: Platform
    /// Not to be pushed to before.
    package let notBefore: UnixTime
    /// How often it was handed to the service.
    package let attempts: Int
    /// How many of those do not count against it: they met a service that could not work.
    package let heldAttempts: Int
    /// How often it has waited for a service that works.
    package let waits: Int
    /// Whether an attempt had no answer, so that the device may have it already.
    package let wasUnanswered: Bool
    /// When it was first handed over; nil when it never was.
    package let firstAttemptAt: UnixTime?
    /// The last reason given.
    package let reason: String
    /// The last HTTP status; 0 where there was none.
    package let status: Int
    /// How often the service refused it as if the sender could not work, which then worked for others.
    package let contradictions: Int

    package init(
      registration: RegistrationID, platform: Platform, notBefore: UnixTime, attempts: Int, heldAttempts: Int,
      waits: Int,
      wasUnanswered: Bool, firstAttemptAt: UnixTime?, reason: String, status: Int, contradictions: Int = 0
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
    send: SendRequest, part: Int, parts: Int, attempt: AttemptID?, deferrals: Int, cameEarly: Bool = false,
    devices: [Device],
    counts: OutcomeCounts = OutcomeCounts()
  ) {
    self.send = send
    self.part = part
    self.parts = parts
    self.attempt = attempt
    self.deferrals = deferrals
    self.cameEarly = cameEarly
    self.devices = devices
    self.counts = counts
  }

  /// When the first of its devices may be pushed to; the time of acceptance when none waits.
  package var notBefore: UnixTime {
    devices.compactMap { if case .waiting(let device) = $0 { device.notBefore } else { nil } }.min() ?? send.acceptedAt
  }

  /// What tells the record from every other, and is the same however often it is written.
  package var identity: SendID {
    // The multipliers spread small numbers over the words (Knuth's and Weyl's constants).
    let number = UInt64(truncatingIfNeeded: part) &* 0x9E37_79B9_7F4A_7C15
    let count = UInt64(truncatingIfNeeded: deferrals) &* 0xD1B5_4A32_D192_ED03
    let id = send.identity
    // Multiplied, because the attempt at a broadcast has the send's own id, and would take it out again.
    let (high, low) = ((attempt?.high ?? 0) &* 0xBF58_476D_1CE4_E5B9, (attempt?.low ?? 0) &* 0x94D0_49BB_1331_11EB)
    return SendID(high: id.high ^ high ^ count, low: id.low ^ low ^ number)
  }
}
