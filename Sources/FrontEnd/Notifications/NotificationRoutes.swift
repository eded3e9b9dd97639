import FanfareCore
import HTTPServer
import HTTPTypes
import Logging

/// The app-compatible routes for sends to one user, with visible text or with a secure payload.
struct NotificationRoutes: Sendable {
  let intake: SendIntake
  let idempotency: Idempotency
  let secure: any SecurePayloadStore
  let inquiry: any RegistrationInquiry
  let clock: any WallClock
  let maximumBodySize: Int
  let securePayloadLifetime: Duration
  let logger: Logger

  var routes: [Route] {
    [
      .direct(.post, "api/notifications", [.sendUser]) { exchange, caller in
        try caller.hub.metrics.countingRefusals { try notify(exchange, by: caller) }
      },
      Route(.post, "api/notifications/secure", [.sendUser]) { exchange, caller in
        try await caller.hub.metrics.countingRefusals { try await notifySecurely(exchange, by: caller) }
      },
      Route(.get, "api/notifications/{id}", [.device]) { try await read($0, by: $1) },
    ]
  }

  private func notify(_ exchange: Exchange, by caller: Caller) throws -> Reply {
    let key = try IdempotencyKey(of: exchange)
    let (platform, named) = try Self.target(of: try Query(of: exchange))
    try MediaType.json.require(of: exchange)
    guard exchange.body.isAtHand else {
      return .later { exchange in
        let message = try Self.message(reading: try await exchange.bytes(upTo: maximumBodySize))
        return try await notify(named, on: platform, of: message, key, exchange, by: caller)
      }
    }
    let message = try Self.message(reading: try exchange.arrivedBytes(upTo: maximumBodySize))
    // The registry may have to tell whom a `+` means.
    if key == nil, exchange.target.query?.utf8.contains(UInt8(ascii: "+")) == false,
      let mailbox = exchange.memory?.mailbox
    {
      let origin = SendOrigin(exchange, by: caller, at: clock.now())
      let submission = try Submission(
        notifying: named, on: platform, of: message, id: Identities.send(at: origin.receivedAt), from: origin)
      if try mailbox.take(submission, of: exchange, by: caller, state: nil) { return .taken }
    }
    return .later { try await notify(named, on: platform, of: message, key, $0, by: caller) }
  }

  private func notify(
    _ named: String, on platform: Platform, of message: String, _ key: IdempotencyKey?, _ exchange: Exchange,
    by caller: Caller
  ) async throws -> Answer {
    let recipient = try await recipient(named, in: exchange, hub: caller.hub.name)
    let origin = SendOrigin(exchange, by: caller, at: clock.now())
    let id = try await idempotency.run(
      key, for: Fingerprint("notifications", platform.name, named, message), by: caller,
      at: origin.receivedAt, id: Identities.send(at: origin.receivedAt)
    ) { id in
      let submission = try Submission(notifying: recipient.name, on: platform, of: message, id: id, from: origin)
      try await intake.accept(submission, into: caller.hub)
    }
    return recipient.answer(AcceptedSend(id: id, hub: caller.hub, state: nil))
  }

  /// Reads the query of a notification.
  static func target(of query: Query) throws(Refusal) -> (platform: Platform, recipient: String) {
    guard let platform = Platform(name: try query.required("pns")) else {
      throw Refusal(.invalidParameter, "pns must be \(Platform.appNames.alternatives)")
    }
    return (platform, try recipient(in: query))
  }

  private func notifySecurely(
    _ exchange: Exchange, by caller: Caller
  ) async throws -> Answer {
    let key = try IdempotencyKey(of: exchange)
    let named = try Self.recipient(in: try Query(of: exchange))
    try MediaType.json.require(of: exchange)
    let payload = try Self.message(reading: try await exchange.bytes(upTo: maximumBodySize))
    let recipient = try await recipient(named, in: exchange, hub: caller.hub.name)
    let lifetime = securePayloadLifetime
    let origin = SendOrigin(exchange, by: caller, at: clock.now())
    let send = try await idempotency.run(
      key, for: Fingerprint("notifications/secure", named, payload), by: caller,
      at: origin.receivedAt, id: Identities.send(at: origin.receivedAt)
    ) { send in
      let id = SecurePayloadID(announcedBy: send)
      let fields = AppNotification.announcement(of: id, to: recipient.name, lifetime: Int(lifetime.components.seconds))
      let submission = try Submission(fields, id: send, from: origin)
      let bytes = payload.utf8.count + HubQuotas.rowBytes
      var isStored = false
      func chargeRest() async {
        await caller.hub.quotas.chargeRest(of: bytes, to: .storedBytes, of: caller.user, at: origin.receivedAt)
      }
      do {
        // The payload is stored before the send is produced: a device may ask for it at once.
        try await intake.accept(submission, into: caller.hub) {
          try await caller.hub.quotas.charge(1, to: .storedBytes, of: caller.user, at: origin.receivedAt)
          try await secure.store(
            payload, id: id, hub: caller.hub.name, recipient: recipient.name, expiresAt: origin.receivedAt + lifetime)
          isStored = true
        }
      } catch {
        // With a key, another request with the same key may have announced the payload, or will.
        if key == nil, isStored, Refusal(describing: error).isCertain {
          isStored = await !discard(id, caller: caller, exchange)
        }
        if isStored { await chargeRest() }
        throw error
      }
      await chargeRest()
    }
    return recipient.answer(AcceptedSend(id: send, hub: caller.hub, state: nil))
  }

  private func read(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    // HEAD has no body in its answer, so it does not count as delivery.
    guard let id = exchange.parameters["id"].flatMap({ SecurePayloadID(String($0)) }),
      let payload = try await secure.read(
        id, hub: caller.hub.name, recipient: caller.user, isDelivered: exchange.method != .head, at: clock.now())
    else { throw Refusal(.notFound, "there is no such notification") }
    let body = JSONWriter.object {
      $0.member("Id", payload.id)
      $0.member("Payload", payload.payload)
      $0.member("Read", payload.isRead)
    }
    return .json(body, isPrivate: true)
  }

  /// Deletes a payload that was not announced. Returns whether it is deleted.
  private func discard(_ id: SecurePayloadID, caller: Caller, _ exchange: Exchange) async -> Bool {
    do {
      try await secure.discard(id, hub: caller.hub.name)
      return true
    } catch {
      logger.warning(
        "Unannounced secure payload could not be deleted; it stays until it expires",
        metadata: [
          LogKeys.securePayload: "\(id)", LogKeys.hub: "\(caller.hub.name)", LogKeys.requestID: "\(exchange.id)",
        ])
      return false
    }
  }

  /// The user that `to_tag` means. A `+` that is not escaped stands for a space, as in form encoding, if only the user
  /// with the space in the name has a device; otherwise, and while the registry is away, it stands for itself.
  private func recipient(_ name: String, in exchange: Exchange, hub: HubName) async throws -> Recipient {
    let parameter = exchange.target.query?.split(separator: "&").first { $0.hasPrefix("to_tag=") }
    guard let parameter, parameter.utf8.contains(UInt8(ascii: "+")),
      let spaced = try Query(parameter.replacing("+", with: "%20")[...]).value(of: "to_tag"),
      UserName.isValid(spaced)
    else { return Recipient(name: name) }
    do {
      for user in [name, spaced] {
        if try await inquiry.count(tag: Tag.username(user), hub: hub, limit: 1) > 0 {
          return Recipient(name: user, wasUnclear: true)
        }
      }
    } catch let error where error is RegistryError || error is TooManyReads {
      // A send needs no registry.
    }
    return Recipient(name: name, wasUnclear: true)
  }

  /// The user to whom a notification goes.
  private struct Recipient {
    let name: String
    /// Whether the request might have meant another one; then the answer tells who it is.
    var wasUnclear = false

    func answer(_ send: AcceptedSend) -> Answer {
      var answer = send.answer
      if wasUnclear { answer.headers[.recipient] = name.percentEncoded }
      return answer
    }
  }

  private static func recipient(in query: Query) throws(Refusal) -> String {
    guard let name = try query.userName("to_tag") else { throw Refusal(.invalidParameter, "to_tag is missing") }
    return name
  }

  /// Reads the body of a notification: one JSON string.
  static func message(reading body: ArraySlice<UInt8>) throws(Refusal) -> String {
    do throws(JSONError) {
      var reader = try JSONReader(body, refusesLoneSurrogates: true)
      let message = try reader.readString()
      try reader.finish()
      return message
    } catch {
      throw Refusal(error)
    }
  }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; this literal is valid.
  static let recipient = HTTPField.Name("Fanfare-Recipient")!
}

extension Submission {
  /// Makes the send of a notification.
  init(
    notifying recipient: String, on platform: Platform, of message: String, id: SendID, from origin: SendOrigin
  ) throws(Refusal) {
    let text = "From \(origin.caller.user): \(message)"
    try self.init(AppNotification.message(text, to: recipient, on: platform), id: id, from: origin)
  }
}

/// Sends in the form that the tutorial apps understand.
enum AppNotification {
  /// Makes a send that shows a text on one platform.
  static func message(_ text: String, to recipient: String, on platform: Platform) -> SendFields {
    var fields = SendFields()
    fields.audience = .user(recipient)
    fields.platforms = PlatformSet(platform)
    fields.native[platform] = platform.vocabulary.notice(text)
    return fields
  }

  /// Makes a silent send on all platforms that announces a secure payload.
  /// Both live for `lifetime` seconds. The app then fetches the payload by its id.
  static func announcement(of id: SecurePayloadID, to recipient: String, lifetime: Int) -> SendFields {
    var fields = SendFields()
    fields.audience = .user(recipient)
    fields.timeToLive = lifetime
    for platform in Platform.allCases { fields.native[platform] = platform.vocabulary.announcement(of: id) }
    return fields
  }
}
