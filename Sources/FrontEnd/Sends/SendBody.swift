import FanfareCore

/// A send as a caller writes it, read in one pass.
enum SendBody {
  /// The members that a caller may give. A record has more (`hub`, `sender`, `traceparent`), which a caller must not
  /// choose.
  private static let members = [
    "to", "message", "native", "platforms", "ttl", "priority", "collapseKey", "maxPerSecond", "sendAt",
  ]

  /// Reads a body and makes a send of it. Throws a refusal that names the member.
  ///
  /// One whose time has passed goes at once. Under an `Idempotency-Key` it is held nevertheless: when it came first its
  /// time may not have passed yet, and what is held under its id is not held again.
  static func read(
    _ body: ArraySlice<UInt8>, by caller: Caller, traceparent: String?, isRepeatable: Bool, at now: UnixTime
  ) throws(Refusal) -> Submission {
    var fields = SendFields()
    var sendAt: UnixTime?
    do throws(JSONError) {
      var seen = 0
      var reader = try JSONReader(body)
      try reader.readObject { (key, reader) throws(JSONError) in
        guard let index = members.firstIndex(where: { $0 ~= key }) else { throw reader.error("is not a known member") }
        guard seen & 1 << index == 0 else { throw reader.duplicateMember() }
        seen |= 1 << index
        if "sendAt" ~= key {
          sendAt = try readTime(&reader, notAfter: now + Submission.longestDelay)
        } else {
          _ = try fields.read(key, from: &reader, strict: true)
        }
      }
      try reader.finish()
    } catch {
      throw Refusal(error)
    }
    fields.hub = caller.hub.name
    fields.sender = caller.user
    fields.traceparent = traceparent
    let send: SendRequest
    do throws(JSONError) {
      send = try fields.request(id: Identities.send(at: now), acceptedAt: now)
    } catch {
      throw Refusal(error)
    }
    guard canArrive(send) else {
      throw Refusal(.impossible, "native covers none of the platforms that the send may go to")
    }
    let heldUntil = sendAt.flatMap { $0 > now ? $0 : isRepeatable ? now : nil }
    return Submission(send: send, heldUntil: heldUntil)
  }

  private static func readTime(_ reader: inout JSONReader, notAfter latest: UnixTime) throws(JSONError) -> UnixTime {
    guard let time = try reader.readTime() else { throw reader.error("must be an RFC 3339 date-time") }
    guard time <= latest else { throw reader.error("must be at most a year ahead") }
    return time
  }

  /// Whether there is a platform that the send may go to and has something to show on.
  private static func canArrive(_ send: SendRequest) -> Bool {
    if case .device(let platform, _) = send.audience {
      return send.coveredPlatforms.contains(platform)
    }
    return !send.coveredPlatforms.isEmpty
  }
}
