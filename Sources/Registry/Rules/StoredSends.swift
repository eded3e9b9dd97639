package import FanfareCore

extension BroadcastControl {
  /// Reads a stored state and cause. Throws `.unavailable` for values that no release has written.
  /// `rate` is the stored rate: nil if none is stored.
  init(state: String, cause: String, rate: Int64?) throws {
    guard let state = State(rawValue: state), let cause = Cause(rawValue: cause) else {
      throw RegistryError(.unavailable, "the registry has an unknown state of a broadcast")
    }
    self.init(state, because: cause, rate: rate.map { BroadcastRate($0 > 0 ? Int($0) : nil) })
  }

  /// Whether the wanted control may replace this one: a cancelled broadcast stays cancelled, and failures can only
  /// change a running one.
  package func accepts(_ wanted: BroadcastControl) -> Bool {
    state != .cancelled && (wanted.cause != .failures || state == .running)
  }
}

extension BroadcastRate {
  /// The value of the column `rate`: 0 for unlimited.
  var stored: Int64 { Int64(perSecond ?? 0) }
}

extension BroadcastProgress {
  /// The most segments that are reported.
  private static let mostSegments = 1000

  /// `finished` has the finished and recently finished pages of each segment that has some. Their segment is
  /// `((page + 1) * segments - 1) / pages`, the inverse of `SegmentRecord.range(ofSegment:of:pages:)`.
  package init(
    control: BroadcastControl, pages: Int, segments: Int, plannedAt: UnixTime?,
    finished: [(segment: Int, pages: Int, recent: Int)]
  ) {
    let counts = Dictionary(finished.map { ($0.segment, $0.pages) }, uniquingKeysWith: { $0.addingClamped($1) })
    self.init(
      control: control, pages: pages, finishedPages: finished.map(\.pages).clampedSum(),
      recentPages: finished.map(\.recent).clampedSum(), plannedAt: plannedAt,
      segments: segments > Self.mostSegments
        ? []
        : (0..<segments).map {
          Segment(
            pages: SegmentRecord.range(ofSegment: $0, of: segments, pages: pages), finishedPages: counts[$0] ?? 0)
        })
  }
}

extension ScheduledSend {
  /// Thrown for a stored send that this release cannot decode.
  static let damaged = RegistryError(.unavailable, "the registry has a scheduled send that it cannot read")

  /// Reads a stored send. Throws ``damaged``.
  init(stored record: [UInt8], scheduledAt: UnixTime, state: String, mayBeEnqueued: Bool = false) throws {
    guard let state = State(rawValue: state) else { throw Self.damaged }
    do {
      self.init(
        send: try SendRequest.decode(record[...], recordTime: scheduledAt), scheduledAt: scheduledAt, state: state,
        mayBeEnqueued: mayBeEnqueued)
    } catch {
      throw Self.damaged
    }
  }

  /// When the row of a cancelled send may be removed; nil for other states.
  static func forgetAt(_ state: State, at now: UnixTime) -> UnixTime? {
    state == .cancelled ? now + Purge.broadcastLifetime : nil
  }
}

extension UnixTime {
  /// Rounds a time in microseconds up to the next millisecond.
  package init(microsecondsRoundedUp microseconds: Int64) {
    self.init(milliseconds: microseconds.addingClamped(999) / 1000)
  }
}

/// The sender of a send in its hub, compared by bytes.
struct SenderKey: Hashable, Sendable {
  let hub: HubName
  let name: String

  static func == (left: Self, right: Self) -> Bool { left.hub == right.hub && left.name.hasSameBytes(as: right.name) }

  func hash(into hasher: inout Hasher) {
    hasher.combine(hub)
    for byte in name.utf8 { hasher.combine(byte) }
  }
}

extension SendRequest {
  /// Nil without a sender.
  var senderKey: SenderKey? { sender.map { SenderKey(hub: hub, name: $0) } }
}

extension SendID {
  /// Broadcasts with smaller ids that are neither planned nor scheduled do not count as open: an hour is enough for a
  /// worker to begin. Kafka may never have taken them, where the front end got no answer.
  ///
  /// The id of a request that is repeated under its `Idempotency-Key` has the time of the first one, up to a day ago.
  /// Such a broadcast can be left out before a worker begins it. That frees no other quota: it has taken its permits of
  /// `sends`, `devices` and `storedBytes`, which bound it as they bound those that have ended.
  static func neverBegun(at now: UnixTime) -> Self {
    // The ids of sends begin with their time.
    Self(high: UInt64(clamping: now.milliseconds - 3_600_000) << 16, low: 0)
  }
}

/// The stored use of a sender's scheduled sends. It is never too small: it is only added to, and counted again when it
/// reaches the limit.
struct ScheduledUse {
  private(set) var sends: Int
  private(set) var bytes: Int
  /// When the sends were counted, in Unix milliseconds.
  private(set) var countedAt: Int64

  init(sends: Int, bytes: Int, countedAt: Int64) {
    (self.sends, self.bytes, self.countedAt) = (sends, bytes, countedAt)
  }

  /// Adds sends. Returns the quota that this would exceed; then nothing is added.
  mutating func add(
    _ sends: Int, bytes: Int, within limit: ScheduledSendLimit, at now: UnixTime,
    recount: () throws -> (sends: Int, bytes: Int)
  ) rethrows -> QuotaName? {
    if limit.exceeded(bySends: self.sends.addingClamped(sends), bytes: self.bytes.addingClamped(bytes)) != nil,
      ScheduledSendLimit.isOld(countedAt, at: now)
    {
      (self.sends, self.bytes) = try recount()
      countedAt = now.milliseconds
    }
    if let quota = limit.exceeded(bySends: self.sends.addingClamped(sends), bytes: self.bytes.addingClamped(bytes)) {
      return quota
    }
    self.sends.addClamped(sends)
    self.bytes.addClamped(bytes)
    return nil
  }
}
