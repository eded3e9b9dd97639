import FanfareCore

/// One answer of an OAuth 2 token endpoint, read (RFC 6749 §5.1 and §5.2).
enum TokenAnswer: Sendable {
  /// A token, and how long it lives.
  case granted(String, lifetime: Duration)
  /// It will not grant one to these credentials: the operator's business.
  case refused(reason: String, status: Int)
  /// It cannot now.
  case unavailable(status: Int, retryAfter: Duration?)

  /// What a token lives where the answer does not say: the endpoints at hand grant an hour at least.
  static let defaultLifetime: Duration = .seconds(3600)

  /// Reads an answer. `expires_in` may be a number, a string of one, or missing.
  init(status: Int, body: [UInt8], retryAfter: String?, now: UnixTime) {
    var token: String?
    var lifetime: Int64?
    var code: String?
    do {
      var reader = try JSONReader(body[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        switch (key, try reader.nextKind()) {
        case ("access_token", .string): token = try reader.readString()
        case ("expires_in", .string): lifetime = Int64(try reader.readString())
        case ("expires_in", .number): lifetime = Int64(String(decoding: try reader.readRaw(), as: UTF8.self))
        case ("error", .string): code = try reader.readString()
        default: try reader.skipValue()
        }
      }
      try reader.finish()
    } catch {
      // Half an answer may hold half a token.
      token = nil
    }
    switch status {
    case 200:
      guard let token, HeaderValue.isVisibleASCII(token), lifetime ?? 1 > 0 else {
        self = .unavailable(status: status, retryAfter: nil)
        return
      }
      self = .granted(token, lifetime: lifetime.map { .seconds($0) } ?? Self.defaultLifetime)
    case 408, 429, 500...:
      self = .unavailable(status: status, retryAfter: retryAfter.flatMap { RetryAfter.duration($0, now: now) })
    default:
      let reason = code.flatMap { Self.knownErrors.contains($0) ? $0 : nil } ?? "TokenRefused"
      self = .refused(reason: reason, status: status)
    }
  }

  /// The error codes of RFC 6749 §5.2, and Google's for a disabled client.
  private static let knownErrors: Set = [
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
    "invalid_scope",
    "disabled_client",
  ]
}

extension TokenAnswer: CustomStringConvertible, CustomReflectable {
  /// The outcome; nothing of the token.
  var description: String {
    switch self {
    case .granted: "granted"
    case .refused(let reason, let status): "refused: \(reason) (\(status))"
    case .unavailable(let status, _): "unavailable (\(status))"
    }
  }

  /// Keeps `dump` from printing the token.
  var customMirror: Mirror { Mirror(self, children: [:]) }
}
