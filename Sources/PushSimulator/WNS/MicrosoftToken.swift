import FanfareCore
import Synchronization

/// Microsoft's token endpoints: exchange client credentials for an access token (RFC 6749 §4.4), as `login.live.com`
/// and Entra do.
final class MicrosoftToken: Sendable {
  let tokens: AccessTokens
  private let app: Mutex<SimulatorCredentials.WindowsApp>
  private let injector: FaultInjector

  init(_ configuration: SimulatorConfiguration, app: SimulatorCredentials.WindowsApp, injector: FaultInjector) {
    self.app = Mutex(app)
    tokens = AccessTokens(
      prefix: "EgA", lifetime: configuration.tokenLifetime ?? .seconds(86_400), clock: configuration.clock)
    self.injector = injector
  }

  /// Replaces the secrets; access tokens obtained with the old ones end.
  func replaceSecrets() -> SimulatorCredentials.WindowsApp {
    let fresh = SimulatorCredentials.WindowsApp()
    let renewed = app.withLock { app in
      (app.packageSecret, app.applicationSecret) = (fresh.packageSecret, fresh.applicationSecret)
      return app
    }
    tokens.expireAll()
    return renewed
  }

  /// The reaction to a request; nil for one that is not for a token endpoint.
  func reaction(to request: SimulatedRequest) -> Reaction? {
    guard request.method == "POST" else { return nil }
    if request.path == "/accesstoken.srf" { return reactLive(to: request.form) }
    return Self.tenant(inPath: request.path).map { reactEntra(to: request.form, tenant: $0) }
  }

  /// The tenant in a path of the Entra endpoint, `/TENANT/oauth2/v2.0/token`; nil for another path.
  private static func tenant(inPath path: some StringProtocol) -> String? {
    let suffix = "/oauth2/v2.0/token"
    guard path.hasPrefix("/"), path.hasSuffix(suffix) else { return nil }
    let tenant = String(path.dropFirst().dropLast(suffix.utf8.count))
    return tenant.isEmpty || tenant.contains("/") ? nil : tenant
  }

  /// The reaction of `login.live.com/accesstoken.srf` to a form.
  private func reactLive(to form: FormBody) -> Reaction {
    let app = app.withLock { $0 }
    let refusal = refusal(
      of: form, id: app.packageSID, secret: app.packageSecret, scope: "notify.windows.com", unknownClientStatus: 400)
    return react(refusal: refusal, type: "bearer", expiresIn: String(tokens.seconds))
  }

  /// The reaction of `login.microsoftonline.com/TENANT/oauth2/v2.0/token` to a form.
  private func reactEntra(to form: FormBody, tenant: String) -> Reaction {
    let app = app.withLock { $0 }
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
    injector.reaction(of: .microsoftToken, refusal: refusal, render: TokenAnswer.fault) {
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
