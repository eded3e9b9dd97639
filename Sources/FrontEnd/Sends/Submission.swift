import FanfareCore
import HTTPServer

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
  /// The local time at which devices get it, in parts; nil for a send of one part.
  let local: LocalSendTime?
  /// Whether the name of its template is still to be resolved.
  let namesTemplate: Bool

  /// Makes a send from the fields of a request. Every send of the front end is made here.
  ///
  /// Throws a refusal that names a missing member or one that a push service would refuse, or `.impossible` if the
  /// content covers none of the platforms.
  init(
    _ fields: consuming SendFields, id: SendID, from origin: SendOrigin, heldUntil: UnixTime? = nil,
    local: LocalSendTime? = nil
  ) throws(Refusal) {
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
    self.local = local
    namesTemplate = fields.template.map { $0.name != nil || $0.version != nil } ?? false
    let isCovered =
      if case .device(let platform, _) = send.audience {
        send.coveredPlatforms.contains(platform)
      } else {
        !send.coveredPlatforms.isEmpty
      }
    guard isCovered else { throw Refusal(.impossible, "native covers none of the platforms that the send may go to") }
    do throws(ContentFault) { try send.checkContent() } catch { throw Refusal(.invalidField, error.description) }
  }

  private init(_ former: Submission, send: SendRequest, namesTemplate: Bool) {
    (self.send, self.namesTemplate, local) = (send, namesTemplate, former.local)
    (receivedAt, isHeld, trace) = (former.receivedAt, former.isHeld, former.trace)
  }

  /// The entry in the schedule; nil for a send that is produced at once.
  var scheduled: ScheduledSend? { isHeld ? ScheduledSend(send: send, scheduledAt: receivedAt) : nil }

  /// Returns the same send under the id that belongs to its `Idempotency-Key`.
  func identified(as id: SendID) -> Submission {
    guard id != send.id else { return self }
    return Submission(self, send: send.with { $0.id = id }, namesTemplate: namesTemplate)
  }

  /// Returns the same send with the version of the hub's template that it names, if the hub has one of the name.
  /// Throws the refusals of `HubTemplates.resolve`, and the error of the store.
  func resolved(by templates: HubTemplates) async throws -> Submission {
    guard namesTemplate, let template = send.content.template else { return self }
    return resolved(to: try await templates.resolve(template, in: send.hub))
  }

  /// The same if the version is remembered; nil if the store must be asked.
  func resolvedFromMemory(of templates: HubTemplates) throws(Refusal) -> Submission? {
    guard namesTemplate, let template = send.content.template else { return self }
    return try templates.known(template, in: send.hub).map(resolved)
  }

  /// Returns a part of the same send: for some of its devices, held until a moment.
  func part(_ audience: Audience, id: SendID, at moment: UnixTime) -> Submission {
    let send = send.with {
      ($0.audience, $0.id, $0.acceptedAt) = (audience, id, moment)
    }
    return Submission(self, send: send, namesTemplate: namesTemplate)
  }

  private func resolved(to template: TemplateContent) -> Submission {
    Submission(self, send: send.with { $0.content = Content(template: template) }, namesTemplate: false)
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
  /// A malformed `traceparent` drops `tracestate` too.
  init(_ exchange: borrowing Exchange, by caller: Caller, at now: UnixTime) {
    self.caller = caller
    traceparent = RequestIdentity.traceparent(given: exchange.headers.traceparent)
    tracestate = traceparent == nil ? nil : exchange.headers.tracestate.flatMap(TraceContext.validState)
    receivedAt = now
  }
}

extension Submission {
  /// Reads the body of a send in one pass: the members of `SendFields` that a caller may give, and when to send.
  /// Throws a refusal that names the member, or the scope that the caller lacks.
  ///
  /// If `sendAt` has passed, the send is produced at once. With an `Idempotency-Key` (`isRepeatable`) it is held
  /// nevertheless: at the first request the time may not have passed, and the schedule ignores ids that it has already.
  init(reading body: ArraySlice<UInt8>, from origin: SendOrigin, isRepeatable: Bool) throws(Refusal) {
    let now = origin.receivedAt
    var fields = SendFields()
    var (sendAt, localTime): (UnixTime?, UnixTime?)
    var (isLocal, defaultZone): (Bool, String?) = (false, nil)
    do throws(JSONError) {
      var reader = try JSONReader(body, refusesLoneSurrogates: true)
      try reader.readObject { (key, reader) throws(JSONError) in
        if try fields.read(key, from: &reader, strict: true) { return }
        switch key {
        case "sendAt":
          guard sendAt == nil, localTime == nil else { throw reader.duplicateMember() }
          let text = try reader.readString()
          sendAt = UnixTime(text)
          localTime = sendAt == nil ? LocalSendTime.parse(text) : nil
          guard let time = sendAt ?? localTime else { throw reader.error("must be an RFC 3339 date-time") }
          guard time <= now + ScheduledSend.maximumDelay else { throw reader.error("must be at most 366 days ahead") }
        case "timeZone":
          guard !isLocal else { throw reader.duplicateMember() }
          guard try reader.readString() == "device" else { throw reader.error("must be \"device\"") }
          isLocal = true
        case "defaultTimeZone":
          guard defaultZone == nil else { throw reader.duplicateMember() }
          let name = try reader.readString()
          guard TimeZoneName.isKnown(name) else { throw reader.error(TimeZoneName.expectation) }
          defaultZone = name
        default: throw reader.error("is not a known member")
        }
      }
      try reader.finish()
      try fields.checkTemplateIsAlone()
      guard isLocal == (localTime != nil) else {
        throw JSONError(
          field: isLocal ? "timeZone" : "sendAt",
          problem: isLocal ? "needs a sendAt without an offset" : "must have an offset, or be given with timeZone")
      }
      guard isLocal || defaultZone == nil else { throw JSONError(field: "defaultTimeZone", problem: "needs timeZone") }
      if isLocal, let audience = fields.audience, !audience.mayBeInLocalTime {
        throw JSONError(field: "timeZone", problem: "is not possible for a registration or a handle")
      }
    } catch {
      throw Refusal(error)
    }
    try origin.caller.requireScopes(toSend: fields)
    try self.init(
      fields, id: Identities.send(at: now), from: origin,
      heldUntil: localTime != nil ? now : Self.holding(until: sendAt, isRepeatable: isRepeatable, at: now),
      local: localTime.map { LocalSendTime(inUTC: $0, defaultZone: defaultZone ?? "UTC") })
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
    if let sendAt, sendAt > now + ScheduledSend.maximumDelay {
      throw Refusal(.invalidParameter, "the time of a send must be at most 366 days ahead")
    }
    try origin.caller.requireScopes(toSend: fields)
    try self.init(
      fields, id: Identities.send(at: now), from: origin,
      heldUntil: Self.holding(until: sendAt, isRepeatable: isRepeatable, at: now))
  }
}
