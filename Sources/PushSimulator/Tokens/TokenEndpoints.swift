import CryptoExtras
import FanfareCore
import Synchronization

/// Google's token endpoint: exchanges a service account's signed assertion for an access token (RFC 7523).
final class GoogleToken: Sendable {
  /// The audience of the real endpoint, which is accepted here too.
  static let audience = "https://oauth2.googleapis.com/token"
  /// The scopes that allow sending.
  static let scopes: Set<Substring> = [
    "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
  ]
  private static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
  /// The accepted deviation of a signer's clock, in seconds.
  private static let clockSkew: Int64 = 300

  let tokens: AccessTokens
  private let issuer: Mutex<Issuer>
  private let injector: FaultInjector
  private let clock: any WallClock
  /// The endpoint's own URL, known when the listener is bound.
  private let ownURL = Mutex<String?>(nil)

  private struct Issuer {
    let account: SimulatorCredentials.GoogleServiceAccount
    let key: _RSA.Signing.PublicKey

    init(_ account: SimulatorCredentials.GoogleServiceAccount) throws {
      self.account = account
      key = try _RSA.Signing.PrivateKey(pemRepresentation: account.privateKeyPEM).publicKey
    }
  }

  /// Throws if the account's key is invalid.
  init(
    _ configuration: SimulatorConfiguration, account: SimulatorCredentials.GoogleServiceAccount, tokens: AccessTokens,
    injector: FaultInjector
  ) throws {
    issuer = Mutex(try Issuer(account))
    self.tokens = tokens
    self.injector = injector
    clock = configuration.clock
  }

  /// Replaces the key; access tokens obtained with the old one end. Throws as `init` does.
  func replaceKey(_ account: SimulatorCredentials.GoogleServiceAccount) throws {
    let replacement = try Issuer(account)
    issuer.withLock { $0 = replacement }
    tokens.expireAll()
  }

  /// Accepts this URL as an audience.
  func setOwnURL(_ url: String) { ownURL.withLock { $0 = url } }

  func react(to form: FormBody) -> Reaction {
    injector.reaction(
      of: .googleToken, platform: nil, handle: "", refusal: refusal(of: form), render: TokenAnswer.fault
    ) {
      injector.store.countAccepted(.googleToken)
      // The real endpoint also reports a second less than the hour.
      return TokenAnswer.success(token: tokens.issue(), type: "Bearer", expiresIn: String(max(tokens.seconds - 1, 0)))
    }
  }

  private func refusal(of form: FormBody) -> ServiceAnswer? {
    guard form["grant_type"] == Self.grantType else {
      return TokenAnswer.failure(400, "unsupported_grant_type", "Invalid grant_type: \(form["grant_type"] ?? "")")
    }
    guard let text = form["assertion"], !text.isEmpty else {
      return TokenAnswer.failure(400, "invalid_request", "Missing required parameter: assertion")
    }
    guard let assertion = CompactToken(text.utf8) else { return invalidGrant("Bad Request") }
    let issuer = issuer.withLock { $0 }
    guard assertion.header["alg"] == "RS256" else { return invalidGrant("Invalid signing algorithm.") }
    if let kid = assertion.header["kid"], kid != issuer.account.privateKeyID {
      return invalidGrant("Invalid JWT Signature.")
    }
    guard assertion.claims.issuer == issuer.account.clientEmail else {
      return invalidGrant("Invalid grant: account not found")
    }
    guard
      issuer.key.isValidSignature(
        .init(rawRepresentation: assertion.signature), for: assertion.signedBytes, padding: .insecurePKCS1v1_5)
    else { return invalidGrant("Invalid JWT Signature.") }
    return refusal(of: assertion.claims)
  }

  private func refusal(of claims: CompactToken.Claims) -> ServiceAnswer? {
    let own = ownURL.withLock { $0 }
    guard claims.audience == Self.audience || (own != nil && claims.audience == own) else {
      return invalidGrant("Invalid JWT: Failed audience check.")
    }
    let now = clock.now().seconds
    let inaccurate = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
    guard let issuedAt = claims.issuedAt, let expiresAt = claims.expiresAt, issuedAt <= now + Self.clockSkew,
      expiresAt > now - Self.clockSkew, expiresAt > issuedAt, expiresAt <= issuedAt + 3600
    else { return invalidGrant(inaccurate) }
    guard let scope = claims.scope, !scope.isEmpty else {
      return TokenAnswer.failure(400, "invalid_scope", "Empty or missing scope not allowed.")
    }
    guard scope.split(separator: " ").contains(where: Self.scopes.contains) else {
      return TokenAnswer.failure(400, "invalid_scope", "Invalid OAuth scope or ID token audience provided.")
    }
    return nil
  }

  private func invalidGrant(_ description: String) -> ServiceAnswer {
    TokenAnswer.failure(400, "invalid_grant", description)
  }
}

/// Microsoft's token endpoints: exchange client credentials for an access token (RFC 6749 §4.4), as `login.live.com`
/// and Entra do.
final class MicrosoftToken: Sendable {
  let tokens: AccessTokens
  private let app: SimulatorCredentials.WindowsApp
  private let injector: FaultInjector

  init(app: SimulatorCredentials.WindowsApp, tokens: AccessTokens, injector: FaultInjector) {
    self.app = app
    self.tokens = tokens
    self.injector = injector
  }

  /// The tenant in a path of the Entra endpoint, `/TENANT/oauth2/v2.0/token`; nil for another path.
  static func tenant(inPath path: String) -> Substring? {
    let suffix = "/oauth2/v2.0/token"
    guard path.hasPrefix("/"), path.hasSuffix(suffix) else { return nil }
    let tenant = path.dropFirst().dropLast(suffix.utf8.count)
    return tenant.isEmpty || tenant.contains("/") ? nil : tenant
  }

  /// The reaction of `login.live.com/accesstoken.srf` to a form.
  func reactLive(to form: FormBody) -> Reaction {
    let refusal = refusal(
      of: form, id: app.packageSID, secret: app.packageSecret, scope: "notify.windows.com", unknownClientStatus: 400)
    return react(refusal: refusal, type: "bearer", expiresIn: String(tokens.seconds))
  }

  /// The reaction of `login.microsoftonline.com/TENANT/oauth2/v2.0/token` to a form.
  func reactEntra(to form: FormBody, tenant: some StringProtocol) -> Reaction {
    var refusal: ServiceAnswer?
    if tenant != app.tenantID {
      refusal = TokenAnswer.failure(400, "invalid_request", "AADSTS90002: Tenant not found.")
    } else {
      refusal = self.refusal(
        of: form, id: app.applicationID, secret: app.applicationSecret, scope: "https://wns.windows.com/.default",
        unknownClientStatus: 401)
    }
    // Like the real endpoint, a string, and a second less than the day.
    return react(refusal: refusal, type: "Bearer", expiresIn: "\"\(max(tokens.seconds - 1, 0))\"")
  }

  private func react(refusal: ServiceAnswer?, type: String, expiresIn: String) -> Reaction {
    injector.reaction(of: .microsoftToken, platform: nil, handle: "", refusal: refusal, render: TokenAnswer.fault) {
      injector.store.countAccepted(.microsoftToken)
      return TokenAnswer.success(token: tokens.issue(), type: type, expiresIn: expiresIn)
    }
  }

  private func refusal(
    of form: FormBody, id: String, secret: String, scope: String, unknownClientStatus: Int
  ) -> ServiceAnswer? {
    guard form["grant_type"] == "client_credentials" else {
      return TokenAnswer.failure(400, "unsupported_grant_type", "The grant_type must be client_credentials.")
    }
    guard form["client_id"] == id, form["client_secret"] == secret else {
      return TokenAnswer.failure(unknownClientStatus, "invalid_client", "Invalid client id or client secret.")
    }
    guard form["scope"] == scope else { return TokenAnswer.failure(400, "invalid_scope", "The scope is not valid.") }
    return nil
  }
}

/// Answers of an OAuth 2 token endpoint (RFC 6749 §5).
enum TokenAnswer {
  private static let headers = [
    HeaderField("content-type", "application/json; charset=utf-8"), HeaderField("cache-control", "no-store"),
  ]

  /// `expiresIn` is inserted unchanged, because Microsoft sends a string where others send a number.
  static func success(token: String, type: String, expiresIn: String) -> ServiceAnswer {
    let body = JSONWriter.object { json in
      json.member("token_type", type)
      json.member("expires_in", json: expiresIn.utf8)
      json.member("access_token", token)
    }
    return ServiceAnswer(status: 200, headers: headers, body: body, label: "200", isAccepted: true)
  }

  static func failure(_ status: Int, _ code: String, _ description: String, retryAfter: [HeaderField] = [])
    -> ServiceAnswer
  {
    let body = JSONWriter.object { json in
      json.member("error", code)
      json.member("error_description", description)
    }
    return ServiceAnswer(status: status, headers: headers + retryAfter, body: body, label: "\(status) \(code)")
  }

  static func fault(_ fault: FaultAnswer) -> ServiceAnswer {
    let usual =
      switch fault.status {
      case 401: "invalid_client"
      case 429: "rate_limit_exceeded"
      case 400..<500: "invalid_grant"
      case 503: "temporarily_unavailable"
      default: "internal_failure"
      }
    return failure(fault.status, fault.reason ?? usual, "Ordered by a fault.", retryAfter: fault.headers)
  }
}

/// The fields of an `application/x-www-form-urlencoded` body (WHATWG URL §5.1).
struct FormBody {
  private let fields: [String: String]

  /// If a field occurs twice, the first one counts.
  init(_ body: some Collection<UInt8>) {
    var fields: [String: String] = [:]
    for pair in body.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      let name = PercentEncoding.decode(parts[0], plusIsSpace: true)
      let value = parts.count > 1 ? PercentEncoding.decode(parts[1], plusIsSpace: true) : ""
      if fields[name] == nil { fields[name] = value }
    }
    self.fields = fields
  }

  subscript(name: String) -> String? { fields[name] }
}

/// Percent encoding of URLs and forms (RFC 3986 §2.1).
enum PercentEncoding {
  /// Decodes; an invalid escape stays unchanged.
  static func decode(_ text: some Collection<UInt8>, plusIsSpace: Bool = false) -> String {
    let bytes = Array(text)
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = Hexadecimal.value(of: bytes[index + 1]),
        let low = Hexadecimal.value(of: bytes[index + 2])
      {
        output.append(high << 4 | low)
        index += 3
      } else {
        output.append(plusIsSpace && bytes[index] == UInt8(ascii: "+") ? UInt8(ascii: " ") : bytes[index])
        index += 1
      }
    }
    return String(decoding: output, as: UTF8.self)
  }
}
