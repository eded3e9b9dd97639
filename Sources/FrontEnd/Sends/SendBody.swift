import FanfareCore

/// A send as a caller writes it, read in one pass.
enum SendBody {
  /// The members that a caller may give. A record has more (`hub`, `sender`, `traceparent`), which a caller must not choose.
  private static let members = ["to", "message", "native", "platforms", "ttl", "priority", "collapseKey", "maxPerSecond"]

  /// Reads a body and makes a send of it. Throws a refusal that names the member.
  static func read(
    _ body: ArraySlice<UInt8>, by caller: Caller, traceparent: String?, at now: UnixTime
  ) throws(Refusal) -> SendRequest {
    var fields = SendFields()
    do throws(JSONError) {
      var seen = 0
      var reader = try JSONReader(body)
      try reader.readObject { (key, reader) throws(JSONError) in
        guard let index = members.firstIndex(where: { $0 ~= key }) else { throw reader.error("is not a known member") }
        guard seen & 1 << index == 0 else { throw reader.givenTwice() }
        seen |= 1 << index
        _ = try fields.read(key, from: &reader, strict: true)
      }
      try reader.finish()
    } catch {
      throw refusal(error)
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
    return send
  }

  /// Whether there is a platform that the send may go to and has something to show on.
  private static func canArrive(_ send: SendRequest) -> Bool {
    if case .device(let platform, _) = send.audience {
      return send.coveredPlatforms.contains(platform)
    }
    return !send.coveredPlatforms.isEmpty
  }

  /// Tells what this server does not do from what is wrong.
  private static func refusal(_ error: JSONError) -> Refusal {
    if error.field == "sendAt" {
      return Refusal(.notSupported, "sendAt is not supported; supported are \(members.joined(separator: ", "))")
    }
    return Refusal(error)
  }
}
