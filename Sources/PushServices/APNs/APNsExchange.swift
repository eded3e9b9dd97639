package import FanfareCore
package import HTTP2

/// Builds the requests of one batch, which share as much as possible.
package struct APNsRequestWriter {
  private static let path = Array(":path".utf8)
  private static let id = Array("apns-id".utf8)
  private static let expiration = Array("apns-expiration".utf8)
  /// `apns-push-type` and `apns-priority` are among the shared fields.
  private static let sharedFieldCount = 2

  private let fields: APNsCredential.Fields
  private let now: UnixTime
  private let timeout: Duration
  private var scratch: [UInt8] = []
  private var expiry: (moment: UnixTime, text: [UInt8], patience: Duration)?

  /// `now` is the moment at which the requests are made, `timeout` the time each may take.
  package init(fields: APNsCredential.Fields, now: UnixTime, timeout: Duration) {
    self.fields = fields
    self.now = now
    self.timeout = timeout
    scratch.reserveCapacity(96)
  }

  /// Builds the request for a push whose handle is hexadecimal.
  package mutating func request(for push: Push) -> HTTP2Request {
    var headers = HTTP2Headers(reservingFields: 4, bytes: 224)
    scratch.removeAll(keepingCapacity: true)
    scratch.append(contentsOf: "/3/device/".utf8)
    scratch.append(contentsOf: push.handle.utf8)
    // It identifies a device, so intermediaries must not index it (RFC 7541 §6.2.3).
    headers.append(name: Self.path, value: scratch, indexing: .never)
    scratch.removeAll(keepingCapacity: true)
    push.id.append(to: &scratch)
    headers.append(name: Self.id, value: scratch, indexing: .withoutIndexing)
    // Thousands of pushes may have the same expiry, so its text is kept.
    if expiry?.moment != push.expiresAt {
      var text: [UInt8] = []
      text.appendJSON(push.expiresAt.seconds)
      expiry = (push.expiresAt, text, push.expiresAt - now)
    }
    if let keptUntil = push.rendering.keptUntil, keptUntil < push.expiresAt {
      headers.append(
        name: Self.expiration, value: Array(String(keptUntil.seconds).utf8), indexing: .withoutIndexing)
    } else if let expiry {
      headers.append(name: Self.expiration, value: expiry.text, indexing: .withoutIndexing)
    }
    for field in push.rendering.headers.dropFirst(Self.sharedFieldCount) {
      headers.append(field.name, field.value, indexing: .withoutIndexing)
    }
    return HTTP2Request(
      ticket: push.ticket, shared: fields[APNsRenderer.Class(of: push.rendering)], headers: headers,
      body: push.rendering.body, timeout: timeout, patience: expiry?.patience, isBulk: push.isBroadcast)
  }
}

/// One answer of APNs.
package struct APNsAnswer: Sendable {
  package let outcome: PushOutcome
  /// The reason, if it is a known one.
  let reason: APNsReason?

  /// Reads an answer: the body's reason decides, then the status. An unknown reason never removes a device: below 500
  /// the push is rejected, from 500 on it is retried. Apple does not document `retry-after`, but it is honoured.
  package init(status: Int, body: [UInt8], retryAfter: String?, now: UnixTime) {
    if status == 200 {
      outcome = PushOutcome(.accepted, status: 200)
      reason = nil
      return
    }
    let error = APNsErrorBody(body)
    reason = error.reason
    let verdict = reason?.verdict ?? (status >= 500 || status == 429 || status == 408 ? .retryLater : .rejected)
    outcome = PushOutcome(
      verdict,
      reason: reason?.rawValue ?? "UnknownReason", status: status,
      retryAfter: verdict == .retryLater ? retryAfter.flatMap { RetryAfter.duration($0, now: now) } : nil,
      since: verdict == .deviceGone ? error.timestamp : nil)
  }
}

/// `{"reason":"…","timestamp":…}`: the body of an error answer, and the debug data of a GOAWAY.
struct APNsErrorBody: Sendable {
  /// The reason, if it is a known one.
  private(set) var reason: APNsReason?
  /// With 410, the moment since which the device token has been invalid.
  private(set) var timestamp: UnixTime?

  /// Reads the known members; a body that is no JSON leaves them nil.
  init(_ body: [UInt8]) {
    guard !body.isEmpty else { return }
    do {
      var reader = try JSONReader(body[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        switch (key, try reader.nextKind()) {
        case ("reason", .string): reason = APNsReason(rawValue: try reader.readString())
        case ("timestamp", .number): timestamp = UnixTime(milliseconds: try reader.readInteger())
        default: try reader.skipValue()
        }
      }
    } catch {
      // For a proxy's HTML or a truncated body, the status decides.
    }
  }
}

/// The reasons of APNs, as Apple spells them ("Handling notification responses from APNs").
enum APNsReason: String, CaseIterable, Sendable {
  case badCollapseID = "BadCollapseId"
  case badDeviceToken = "BadDeviceToken"
  case badExpirationDate = "BadExpirationDate"
  case badMessageID = "BadMessageId"
  case badPriority = "BadPriority"
  case badTopic = "BadTopic"
  case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
  case duplicateHeaders = "DuplicateHeaders"
  case idleTimeout = "IdleTimeout"
  case invalidPushType = "InvalidPushType"
  case missingDeviceToken = "MissingDeviceToken"
  case missingTopic = "MissingTopic"
  case payloadEmpty = "PayloadEmpty"
  case topicDisallowed = "TopicDisallowed"
  case badCertificate = "BadCertificate"
  case badCertificateEnvironment = "BadCertificateEnvironment"
  case expiredProviderToken = "ExpiredProviderToken"
  case forbidden = "Forbidden"
  case invalidProviderToken = "InvalidProviderToken"
  case missingProviderToken = "MissingProviderToken"
  case unrelatedKeyIDInToken = "UnrelatedKeyIdInToken"
  case badEnvironmentKeyIDInToken = "BadEnvironmentKeyIdInToken"
  /// A second spelling of the one above, seen in practice.
  case badEnvironmentKeyInToken = "BadEnvironmentKeyInToken"
  case badPath = "BadPath"
  case methodNotAllowed = "MethodNotAllowed"
  case unregistered = "Unregistered"
  case expiredToken = "ExpiredToken"
  case payloadTooLarge = "PayloadTooLarge"
  case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
  case tooManyRequests = "TooManyRequests"
  case internalServerError = "InternalServerError"
  case serviceUnavailable = "ServiceUnavailable"
  case shutdown = "Shutdown"

  /// What the reason means for the push.
  ///
  /// `BadDeviceToken` may also mean a token of the other environment, which a single push cannot tell; the worker's
  /// guard against mass removal does. `UnrelatedKeyIdInToken` only needs another connection. `DeviceTokenNotForTopic`
  /// does not remove the device: its token is good for another app.
  var verdict: PushOutcome.Verdict {
    switch self {
    case .badDeviceToken, .unregistered, .expiredToken: .deviceGone
    case .badCollapseID, .deviceTokenNotForTopic, .payloadEmpty, .payloadTooLarge: .rejected
    case .badExpirationDate, .badMessageID, .badPriority, .duplicateHeaders, .invalidPushType, .missingDeviceToken,
      .badPath,
      .methodNotAllowed:
      .malformed
    case .badTopic, .missingTopic, .topicDisallowed, .badCertificate, .badCertificateEnvironment, .forbidden,
      .invalidProviderToken, .missingProviderToken, .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken:
      .configurationError
    case .expiredProviderToken: .reauthenticate
    case .idleTimeout, .unrelatedKeyIDInToken: .retryHere
    case .tooManyProviderTokenUpdates, .tooManyRequests, .internalServerError, .serviceUnavailable, .shutdown:
      .retryLater
    }
  }
}
