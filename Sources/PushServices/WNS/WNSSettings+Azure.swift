import SettingsTable

/// The credential as clients of Azure Notification Hubs know it, `WnsCredential`.
extension WNSSettings {
  package var identity: [String: String]? {
    guard case .store(let packageSID, _) = configuration?.flow else { return nil }
    return ["packagesid": packageSID]
  }

  package func files(replacedBy update: CredentialUpdate) throws -> [CredentialUpdate.File] {
    try update.requireOnly(["PackageSid", "SecretKey", "WindowsLiveEndpoint"])
    guard let file, var configuration else { throw update.unconfigured("secretFile") }
    let present = try update.stored("SecretKey") { try file.text() }
    let secret = update["SecretKey"] ?? present
    switch configuration.flow {
    case .store(let packageSID, _): try update.require("PackageSid", is: packageSID, "packageSID")
    case .entra: if update["PackageSid"] != nil { throw update.fixed("PackageSid", "packageSID") }
    }
    configuration.flow = configuration.flow.with(secret: secret)
    try update.require(
      "WindowsLiveEndpoint", is: configuration.tokenEndpoint ?? "https://login.live.com/accesstoken.srf",
      "tokenEndpoint")
    try update.check(["secret": "SecretKey"]) { try WNSSender(configuration, $0) }
    return secret == present ? [] : [CredentialUpdate.File(path: file.path, text: secret)]
  }
}
