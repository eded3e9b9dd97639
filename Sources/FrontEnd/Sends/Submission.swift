import FanfareCore
import Hummingbird

/// A validated send that a caller has posted, before it is accepted.
struct Submission: Hashable, Sendable {
  /// The send as it will be produced.
  /// A held send is accepted at its scheduled time, from which its time to live counts.
  let send: SendRequest
  /// When the request arrived.
  let receivedAt: UnixTime
  /// Whether the send is held until `send.acceptedAt`, instead of produced at once.
  let isHeld: Bool
  /// The span of its acceptance; nil if it is not traced.
  let trace: AcceptTrace?

  /// Makes a send from the fields of a request. Every send of the front end is made here.
  ///
  /// Throws a refusal that names a missing member, or `.impossible` if the content covers none of the platforms.
  init(_ fields: SendFields, id: SendID, from origin: SendOrigin, heldUntil: UnixTime? = nil) throws(Refusal) {
    var fields = fields
    fields.hub = origin.caller.hub.name
    fields.sender = origin.caller.user
    trace = origin.caller.hub.tracing.flatMap { Identities.trace(of: origin, by: $0) }
    // The steps behind the front end belong below its own.
    fields.traceparent = trace?.context.traceparent ?? origin.traceparent
    fields.tracestate = origin.tracestate
    do throws(JSONError) {
      send = try fields.request(id: id, acceptedAt: heldUntil ?? origin.receivedAt)
    } catch {
      throw Refusal(error)
    }
    receivedAt = origin.receivedAt
    isHeld = heldUntil != nil
    let isCovered =
      if case .device(let platform, _) = send.audience {
        send.coveredPlatforms.contains(platform)
      } else {
        !send.coveredPlatforms.isEmpty
      }
    guard isCovered else { throw Refusal(.impossible, "native covers none of the platforms that the send may go to") }
  }

  private init(send: SendRequest, receivedAt: UnixTime, isHeld: Bool, trace: AcceptTrace?) {
    (self.send, self.receivedAt, self.isHeld, self.trace) = (send, receivedAt, isHeld, trace)
  }

  /// The entry in the schedule; nil for a send that is produced at once.
  var scheduled: ScheduledSend? { isHeld ? ScheduledSend(send: send, scheduledAt: receivedAt) : nil }

  /// Returns the same send under the id that belongs to its `Idempotency-Key`.
  func identified(as id: SendID) -> Submission {
    guard id != send.id else { return self }
    return Submission(send: send.with { $0.id = id }, receivedAt: receivedAt, isHeld: isHeld, trace: trace)
  }
}

/// The place of a send's acceptance in its trace.
struct AcceptTrace: Hashable, Sendable {
  let context: TraceContext
  /// The caller's span; nil if the trace begins here.
  let parent: UInt64?
}

/// The request that sends came with.
struct SendOrigin: Sendable {
  let caller: Caller
  let traceparent: String?
  var tracestate: String?
  let receivedAt: UnixTime
}

extension SendOrigin {
  init(_ request: Request, by caller: Caller, at now: UnixTime) {
    self.init(
      traceparent: request.headers[.traceparent], tracestate: request.headers[.tracestate], by: caller, at: now)
  }

  /// `traceparent` and `tracestate`: the values of the header fields. A malformed `traceparent` drops both.
  init(traceparent: String?, tracestate: String?, by caller: Caller, at now: UnixTime) {
    self.caller = caller
    self.traceparent = RequestIdentity.traceparent(given: traceparent)
    self.tracestate = self.traceparent == nil ? nil : tracestate.flatMap(TraceContext.validState)
    receivedAt = now
  }
}

extension Submission {
  /// How far ahead a send may be scheduled: a leap year.
  private static let maximumDelay: Duration = .seconds(366 * 86_400)

  /// The members that a caller may give.
  /// A record has more (`hub`, `sender`, `traceparent`), which callers must not set.
  private static let members = [
    "to", "message", "native", "platforms", "ttl", "priority", "collapseKey", "maxPerSecond", "sendAt",
  ]

  /// Reads the body of a send in one pass.
  /// Throws a refusal that names the member, or the scope that the caller lacks.
  ///
  /// If `sendAt` has passed, the send is produced at once. With an `Idempotency-Key` (`isRepeatable`) it is held
  /// nevertheless: at the first request the time may not have passed, and the schedule ignores ids that it has already.
  init(reading body: ArraySlice<UInt8>, from origin: SendOrigin, isRepeatable: Bool) throws(Refusal) {
    let now = origin.receivedAt
    var fields = SendFields()
    var sendAt: UnixTime?
    do throws(JSONError) {
      var seen = 0
      var reader = try JSONReader(body, refusesLoneSurrogates: true)
      try reader.readObject { (key, reader) throws(JSONError) in
        guard let index = Self.members.firstIndex(where: { $0 ~= key }) else {
          throw reader.error("is not a known member")
        }
        guard seen & 1 << index == 0 else { throw reader.duplicateMember() }
        seen |= 1 << index
        if "sendAt" ~= key {
          guard let time = try reader.readTime() else { throw reader.error("must be an RFC 3339 date-time") }
          guard time <= now + Self.maximumDelay else { throw reader.error("must be at most 366 days ahead") }
          sendAt = time
        } else {
          _ = try fields.read(key, from: &reader, strict: true)
        }
      }
      try reader.finish()
    } catch {
      throw Refusal(error)
    }
    try origin.caller.requireScopes(toSend: fields)
    try self.init(
      fields, id: Identities.send(at: now), from: origin,
      heldUntil: Self.holding(until: sendAt, isRepeatable: isRepeatable, at: now))
  }

  /// The moment until which a send is held; nil if it is produced at once.
  private static func holding(until sendAt: UnixTime?, isRepeatable: Bool, at now: UnixTime) -> UnixTime? {
    sendAt.flatMap { $0 > now ? $0 : isRepeatable ? now : nil }
  }

  /// Makes a send that another protocol's request asks for at a time, with the rules of `init(reading:…)`.
  init(
    _ fields: SendFields, at sendAt: UnixTime?, from origin: SendOrigin, isRepeatable: Bool
  ) throws(Refusal) {
    let now = origin.receivedAt
    if let sendAt, sendAt > now + Self.maximumDelay {
      throw Refusal(.invalidParameter, "the time of a send must be at most 366 days ahead")
    }
    try origin.caller.requireScopes(toSend: fields)
    try self.init(
      fields, id: Identities.send(at: now), from: origin,
      heldUntil: Self.holding(until: sendAt, isRepeatable: isRepeatable, at: now))
  }
}
