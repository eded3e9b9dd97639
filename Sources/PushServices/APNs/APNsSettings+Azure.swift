/// The credential as clients of Azure Notification Hubs know it, `ApnsCredential`.
extension APNsSettings {
  package var identity: [String: String]? {
    guard hasCredentials else { return nil }
    var values = ["endpoint": Self.endpoint(of: configuration.host)]
    (values["appname"], values["appid"]) = (configuration.topic, configuration.teamID)
    // A file that cannot be read is reported where it is needed.
    do { values["keyid"] = try readKey().id } catch {}
    return values
  }

  package func files(replacedBy update: CredentialUpdate) throws -> [CredentialUpdate.File] {
    try update.requireOnly(["Endpoint", "AppName", "AppId", "KeyId", "Token"])
    guard hasCredentials else { throw update.unconfigured("keyFile") }
    let present = try update.stored("Token") { try readKey() }
    var configuration = configuration
    try update.require("AppId", is: configuration.teamID, "teamID")
    try update.require("AppName", is: configuration.topic, "topic")
    if let endpoint = update["Endpoint"], Self.host(of: endpoint) != configuration.host {
      throw update.fixed("Endpoint", "host")
    }
    if !hasKeyIDFile { try update.require("KeyId", is: configuration.keyID, "keyIDFile") }
    configuration.privateKey = update["Token"].map { PEM.text(ofKey: $0) } ?? present.key
    configuration.keyID = update["KeyId"] ?? present.id
    try update.check(["privateKey": "Token", "keyID": "KeyId"]) { try APNsSender(configuration, $0) }
    var changed: [CredentialUpdate.File] = []
    if PEM.content(of: configuration.privateKey) != PEM.content(of: present.key) {
      changed.append(CredentialUpdate.File(path: files[0], text: configuration.privateKey))
    }
    if configuration.keyID != present.id {
      changed.append(CredentialUpdate.File(path: files[1], text: configuration.keyID))
    }
    return changed
  }

  /// Azure's endpoint of a host of APNs, for keys.
  private static func endpoint(of host: String) -> String {
    "https://\(host == "api.sandbox.push.apple.com" ? "api.development.push.apple.com" : host):443/3/device"
  }

  /// The host that APNs has for an endpoint in one of Azure's forms.
  private static func host(of endpoint: String) -> String {
    let host = endpoint.firstRange(of: "://").map { endpoint[$0.upperBound...] } ?? endpoint[...]
    let name = String(host.prefix { $0 != "/" && $0 != ":" })
    return switch name {
    case "gateway.push.apple.com": "api.push.apple.com"
    case "gateway.sandbox.push.apple.com", "api.development.push.apple.com": "api.sandbox.push.apple.com"
    default: name
    }
  }
}
