import FanfareCore

/// Microsoft's token endpoints: client credentials for an access token (RFC 6749 §4.4), in the way of `login.live.com`
/// and of Entra.
final class MicrosoftToken: Sendable {
  let tokens: AccessTokens
  private let app: SimulatorCredentials.WindowsApp
  private let injector: FaultInjector

  /// Endpoints that know one app.
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

  /// The reaction of `login.live.com/accesstoken.srf` to a POST of this form.
  func reactLive(to form: FormBody) -> Reaction {
    let refusal = complaint(
      about: form, id: app.packageSID, secret: app.packageSecret, scope: "notify.windows.com", unknownClientStatus: 400)
    return react(refusal: refusal, type: "bearer", expiresIn: String(tokens.seconds))
  }

  /// The reaction of `login.microsoftonline.com/TENANT/oauth2/v2.0/token` to a POST of this form.
  func reactEntra(to form: FormBody, tenant: some StringProtocol) -> Reaction {
    var refusal: ServiceAnswer?
    if tenant != app.tenantID {
      refusal = TokenAnswer.failure(400, "invalid_request", "AADSTS90002: Tenant not found.")
    } else {
      refusal = complaint(
        about: form, id: app.applicationID, secret: app.applicationSecret, scope: "https://wns.windows.com/.default",
        unknownClientStatus: 401)
    }
    // A string, and a second less than the day, as the real endpoint answers.
    return react(refusal: refusal, type: "Bearer", expiresIn: "\"\(max(tokens.seconds - 1, 0))\"")
  }

  private func react(refusal: ServiceAnswer?, type: String, expiresIn: String) -> Reaction {
    injector.reaction(of: .microsoftToken, platform: nil, handle: "", refusal: refusal, render: TokenAnswer.fault) {
      injector.store.countAccepted(.microsoftToken)
      return TokenAnswer.success(token: tokens.issue(), type: type, expiresIn: expiresIn)
    }
  }

  private func complaint(
    about form: FormBody, id: String, secret: String, scope: String, unknownClientStatus: Int
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
