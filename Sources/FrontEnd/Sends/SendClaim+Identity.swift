import FanfareCore

extension SendClaim {
  /// The id of the send that a line of the request makes (UUID version 8): its time of acceptance, so that it sorts as others do, and the
  /// digest of what tells it from every other. The same, whenever and by whom it is asked for.
  func sendID(line: Int = 0) -> SendID {
    var fingerprint = Fingerprint("\(at.milliseconds)", "\(line)")
    fingerprint.add(key)
    let (high, low) = fingerprint.digest.prefix(16).enumerated().reduce(into: (UInt64(0), UInt64(0))) { words, byte in
      if byte.offset < 8 { words.0 = words.0 << 8 | UInt64(byte.element) } else { words.1 = words.1 << 8 | UInt64(byte.element) }
    }
    let milliseconds = UInt64(clamping: at.milliseconds) & 0xFFFF_FFFF_FFFF
    return SendID(
      high: milliseconds << 16 | 0x8000 | (high & 0x0FFF), low: (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }
}

extension SendRequest {
  /// The same send under another id.
  func identified(as id: SendID) -> SendRequest { copy(id: id, acceptedAt: acceptedAt) }

  /// The same send, accepted at another moment.
  func accepted(at moment: UnixTime) -> SendRequest { copy(id: id, acceptedAt: moment) }

  private func copy(id: SendID, acceptedAt: UnixTime) -> SendRequest {
    SendRequest(
      id: id, hub: hub, sender: sender, acceptedAt: acceptedAt, audience: audience, platforms: platforms, content: content,
      timeToLive: timeToLive, priority: priority, collapseKey: collapseKey, traceparent: traceparent,
      maximumPerSecond: maximumPerSecond)
  }
}
