import FanfareCore

extension SendClaim {
  /// The id of the send that a line of the request makes (UUID version 8): its time of acceptance, so that it sorts as
  /// others do, and the digest of what tells it from every other. The same, whenever and by whom it is asked for.
  func sendID(line: Int = 0) -> SendID {
    var fingerprint = Fingerprint("\(at.milliseconds)", "\(line)")
    fingerprint.add(key)
    let (high, low) = fingerprint.words
    let milliseconds = UInt64(clamping: at.milliseconds) & 0xFFFF_FFFF_FFFF
    return SendID(
      high: milliseconds << 16 | 0x8000 | (high & 0x0FFF), low: (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }
}

extension SecurePayloadID {
  /// The id of the payload that a send announces (UUID version 8): the same, however often the send is made.
  init(announcedBy send: SendID) {
    let (high, low) = Fingerprint("secure payload", "\(send)").words
    self.init(high: (high & 0xFFFF_FFFF_FFFF_0FFF) | 0x8000, low: (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }
}

extension Fingerprint {
  /// The first sixteen bytes of the digest, as big-endian words.
  fileprivate var words: (high: UInt64, low: UInt64) {
    digest.prefix(16).enumerated().reduce(into: (0, 0)) { words, byte in
      if byte.offset < 8 {
        words.high = words.high << 8 | UInt64(byte.element)
      } else {
        words.low = words.low << 8 | UInt64(byte.element)
      }
    }
  }
}

extension SendRequest {
  /// The same send under another id.
  func identified(as id: SendID) -> SendRequest { copy(id: id) }

  /// The same send, accepted at another moment.
  func accepted(at moment: UnixTime) -> SendRequest { copy(acceptedAt: moment) }

  /// The same send, which announces a payload that is kept for so many seconds from its acceptance on. Nobody need hear
  /// of it later.
  func announcing(_ id: SecurePayloadID, for seconds: Int) -> SendRequest {
    copy(content: AppNotification.announcement(of: id), timeToLive: seconds)
  }

  private func copy(
    id: SendID? = nil, acceptedAt: UnixTime? = nil, content: Content? = nil, timeToLive: Int? = nil
  ) -> SendRequest {
    SendRequest(
      id: id ?? self.id, hub: hub, sender: sender, acceptedAt: acceptedAt ?? self.acceptedAt, audience: audience,
      platforms: platforms, content: content ?? self.content, timeToLive: timeToLive ?? self.timeToLive,
      priority: priority,
      collapseKey: collapseKey, traceparent: traceparent, maximumPerSecond: maximumPerSecond)
  }
}
