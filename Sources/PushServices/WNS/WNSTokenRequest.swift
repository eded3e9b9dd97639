/// What a flow asks its token endpoint, and where that is.
struct WNSTokenRequest: Sendable {
  let url: String
  let form: [TokenClient.Field]

  init(_ configuration: WNSConfiguration) {
    switch configuration.flow {
    case .store(let packageSID, let secret):
      url = configuration.tokenEndpoint ?? "https://login.live.com/accesstoken.srf"
      form = [
        ("grant_type", "client_credentials"), ("client_id", packageSID), ("client_secret", secret),
        ("scope", "notify.windows.com"),
      ]
    case .entra(let tenant, let applicationID, let secret):
      url = configuration.tokenEndpoint ?? "https://login.microsoftonline.com/\(tenant)/oauth2/v2.0/token"
      form = [
        ("grant_type", "client_credentials"), ("client_id", applicationID), ("client_secret", secret),
        ("scope", "https://wns.windows.com/.default"),
      ]
    }
  }
}

extension WNSTokenRequest: CustomStringConvertible, CustomReflectable {
  /// Where it goes; nothing of what it says.
  var description: String { url }

  /// Keeps `dump` from printing the secret.
  var customMirror: Mirror { Mirror(self, children: [:]) }
}
