import FanfareCore
import Hummingbird
import Logging
import RDKafka

/// The routes by which apps send to one user, openly and securely.
struct NotificationRoutes: Sendable {
  let gate: Gate
  let intake: SendIntake
  let repetitions: Repetitions
  let secure: any SecurePayloadStore
  let clock: any WallClock
  let maximumBodySize: Int
  let securePayloadLifetime: Duration

  /// Adds the routes to a hub's root.
  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.post("api/notifications") { request, context in
      let caller = try await gate.admit(request, context, as: .sender)
      return try await caller.hub.metrics.countingRefusals { try await notify(request, by: caller) }
    }
    routes.post("api/notifications/secure") { request, context in
      let caller = try await gate.admit(request, context, as: .sender)
      return try await caller.hub.metrics.countingRefusals { try await notifySecurely(request, context, by: caller) }
    }
    routes.get("api/notifications/{id}") { try await read($0, $1) }
  }

  private func notify(_ request: Request, by caller: Caller) async throws -> Response {
    let key = try IdempotencyKey(of: request.headers)
    let query = try Query(of: request)
    guard let platform = Platform(name: try query.required("pns")) else {
      throw Refusal(.invalidParameter, "pns must be apns, gcm, fcm or wns")
    }
    let recipient = try recipient(in: query)
    let message = try await message(in: request)
    let send = send(
      to: recipient, by: caller, request: request, platforms: PlatformSet(platform),
      content: AppNotification.content(text: "From \(caller.user): \(message)", for: platform))
    let id = try await repetitions.run(
      key, for: Fingerprint("notifications", platform.rawValue, recipient, message),
      of: Submission(send: send, heldUntil: nil),
      by: caller
    ) { try await intake.accept($0, into: caller.hub) }
    // 200, not 202: the apps in the field show any other status as an error.
    return .accepted(id, location: caller.hub.location(of: id), status: .ok)
  }

  private func notifySecurely(_ request: Request, _ context: FrontEndContext, by caller: Caller) async throws
    -> Response
  {
    let key = try IdempotencyKey(of: request.headers)
    let recipient = try recipient(in: try Query(of: request))
    let payload = try await message(in: request)
    let lifetime = securePayloadLifetime
    // What it announces is known when it has the id that it is accepted under.
    let send = send(to: recipient, by: caller, request: request, platforms: .all, content: Content())
    let sent = try await repetitions.run(
      key, for: Fingerprint("notifications/secure", recipient, payload), of: Submission(send: send, heldUntil: nil),
      by: caller
    ) { submission in
      let id = SecurePayloadID(announcedBy: submission.send.id)
      let announcement = submission.announcing(id, for: Int(lifetime.components.seconds))
      var isStored = false
      do {
        // First the payload, then the word of it: a phone may ask for it at once.
        try await intake.accept(announcement, into: caller.hub) {
          try await secure.store(
            payload, id: id, hub: caller.hub.name, recipient: recipient,
            expiresAt: announcement.send.acceptedAt + lifetime)
          isStored = true
        }
      } catch {
        // Under a key an earlier request may have announced it, or a later one will.
        if isStored, key == nil { await discard(id, after: error, caller: caller, context: context) }
        throw error
      }
    }
    return .accepted(sent, location: caller.hub.location(of: sent), status: .ok)
  }

  private func read(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await gate.admit(request, context, as: .device)
    // The answer to HEAD, which comes here too, goes without its body.
    guard let id = context.parameters["id"].flatMap({ SecurePayloadID(String($0)) }),
      let payload = try await secure.read(
        id, hub: caller.hub.name, recipient: caller.user, isDelivered: request.method != .head, at: clock.now())
    else { throw Refusal(.notFound, "there is no such notification") }
    var body: [UInt8] = []
    body.append(literal: #"{"Id":"#)
    body.appendJSON(payload.id)
    body.append(literal: #","Payload":"#)
    body.appendJSON(payload.payload)
    body.append(literal: payload.isRead ? #","Read":true}"# : #","Read":false}"#)
    var response = Response.json(body)
    response.headers[.cacheControl] = "no-store"
    return response
  }

  /// Takes back a payload of which nobody will hear. Where the announcement may be under way all the same, the payload
  /// stays until it expires.
  private func discard(_ id: SecurePayloadID, after error: any Error, caller: Caller, context: FrontEndContext) async {
    guard Refusal(describing: error).code != .outcomeUnknown else { return }
    do {
      try await secure.discard(id, hub: caller.hub.name)
    } catch {
      context.logger.warning(
        "A secure payload that was not announced stays until it expires",
        metadata: [
          LogKeys.securePayload: "\(id)", LogKeys.hub: "\(caller.hub.name)", LogKeys.requestID: "\(context.requestID)",
        ])
    }
  }

  private func recipient(in query: Query) throws(Refusal) -> String {
    let name = try query.required("to_tag")
    guard UserName.isValid(name) else {
      throw Refusal(.invalidParameter, "to_tag must be a user name: \(UserName.rule)")
    }
    return name
  }

  /// The body: one JSON string.
  private func message(in request: Request) async throws -> String {
    try MediaType.json.require(of: request)
    let body = try await request.bytes(upTo: maximumBodySize)
    do throws(JSONError) {
      var reader = try JSONReader(body)
      let message = try reader.readString()
      try reader.finish()
      return message
    } catch {
      throw Refusal(error)
    }
  }

  private func send(
    to recipient: String, by caller: Caller, request: Request, platforms: PlatformSet, content: Content
  ) -> SendRequest {
    let now = clock.now()
    return SendRequest(
      id: Identities.send(at: now), hub: caller.hub.name, sender: caller.user, acceptedAt: now,
      audience: .user(recipient),
      platforms: platforms, content: content, traceparent: RequestIdentity.traceparent(of: request.headers))
  }
}
