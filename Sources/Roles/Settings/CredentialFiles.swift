import AzureHub
import FanfareCore
import Foundation
import FrontEnd
import PushServices
import SettingsTable
import Store

/// The files of a hub's credentials, whose ids a client of Azure may read, and which it may replace if
/// `hub.NAME.azure.updatesCredentials` is set.
///
/// It writes to the paths of the configuration alone, each file at once: a reader sees the old or the new one. Workers
/// read them again when they change; see `CredentialWatch`.
actor CredentialFiles: HubCredentialStore {
  /// A file with its new text.
  private struct Change {
    let platform: Platform
    let path: String
    let text: String
  }

  private let hub: HubSettings
  private let runtime: Runtime

  init(of hub: HubSettings, _ runtime: Runtime) { (self.hub, self.runtime) = (hub, runtime) }

  func replace(_ credentials: [HubCredential]) async throws -> [Platform] {
    guard hub.simulator == nil else {
      throw Refusal(.conflict, "The hub pushes to a simulator and has no credentials of its own.")
    }
    var all: [Change] = []
    for credential in credentials {
      switch credential.platform {
      case .apns: all += try changes(ofAPNs: credential)
      case .fcm: all += try changes(ofFCM: credential)
      case .wns: all += try changes(ofWNS: credential)
      default: throw Refusal(.conflict, "\(credential.name) cannot be changed on this server")
      }
    }
    try write(all)
    return credentials.map(\.platform).filter { platform in all.contains { $0.platform == platform } }
  }

  func identities() async -> [HubCredential] {
    guard hub.simulator == nil else { return [] }
    return [
      identity(ofAPNs: hub.service(APNsSettings.self)), identity(ofFCM: hub.service(FCMSettings.self)),
      identity(ofWNS: hub.service(WNSSettings.self)),
    ].compactMap(\.self)
  }

  // MARK: Identities

  // A file that cannot be read is reported where it is needed.

  private func identity(ofAPNs settings: APNsSettings?) -> HubCredential? {
    guard let settings else { return nil }
    let configuration = settings.configuration
    var values = ["endpoint": Self.endpoint(of: configuration.host)]
    (values["appname"], values["appid"]) = (configuration.topic, configuration.teamID)
    do { values["keyid"] = try settings.readKey().id } catch {}
    return HubCredential(.apns, name: "ApnsCredential", values)
  }

  private func identity(ofFCM settings: FCMSettings?) -> HubCredential? {
    guard let file = settings?.file else { return nil }
    do {
      let account = try JSONDecoder().decode([String: String].self, from: Data(try file.text().utf8))
      var values: [String: String] = [:]
      (values["projectid"], values["clientemail"]) = (account["project_id"], account["client_email"])
      return HubCredential(.fcm, name: "FcmV1Credential", values)
    } catch { return nil }
  }

  private func identity(ofWNS settings: WNSSettings?) -> HubCredential? {
    guard case .store(let packageSID, _) = settings?.configuration?.flow else { return nil }
    return HubCredential(.wns, name: "WnsCredential", ["packagesid": packageSID])
  }

  // MARK: Credentials

  private func changes(ofAPNs credential: HubCredential) throws -> [Change] {
    try credential.requireOnly(["Endpoint", "AppName", "AppId", "KeyId", "Token"])
    guard let settings = hub.service(APNsSettings.self) else { throw unconfigured(credential, "apns.keyFile") }
    let present = try stored(credential, "Token") { try settings.readKey() }
    var configuration = settings.configuration
    try require(credential, "AppId", is: configuration.teamID, "apns.teamID")
    try require(credential, "AppName", is: configuration.topic, "apns.topic")
    if let endpoint = credential["Endpoint"], Self.appleHost(of: endpoint) != configuration.host {
      throw fixed(credential, "Endpoint", "apns.host")
    }
    if !settings.hasKeyIDFile { try require(credential, "KeyId", is: configuration.keyID, "apns.keyIDFile") }
    configuration.privateKey = credential["Token"].map { PEM.text(ofKey: $0) } ?? present.key
    configuration.keyID = credential["KeyId"] ?? present.id
    try check(credential, ["privateKey": "Token", "keyID": "KeyId"]) {
      try APNsSender(configuration: configuration, logger: runtime.logger)
    }
    var changes: [Change] = []
    if PEM.content(of: configuration.privateKey) != PEM.content(of: present.key) {
      changes.append(Change(platform: .apns, path: settings.files[0], text: configuration.privateKey))
    }
    if configuration.keyID != present.id {
      changes.append(Change(platform: .apns, path: settings.files[1], text: configuration.keyID))
    }
    return changes
  }

  private func changes(ofFCM credential: HubCredential) throws -> [Change] {
    try credential.requireOnly(["ProjectId", "PrivateKey", "ClientEmail", "PrivateKeyId"])
    let settings = hub.service(FCMSettings.self)
    guard let file = settings?.file, var configuration = settings?.configuration else {
      throw unconfigured(credential, "fcm.serviceAccountFile")
    }
    let account = try stored(credential, "PrivateKey") {
      try JSONDecoder().decode([String: String].self, from: Data(try file.text().utf8))
    }
    try require(credential, "ProjectId", is: account["project_id"] ?? "", "fcm.serviceAccountFile")
    var next = account
    next["client_email"] = credential["ClientEmail"] ?? account["client_email"]
    if let key = credential["PrivateKey"].map({ PEM.text(ofKey: $0.replacing("\\n", with: "\n")) }),
      PEM.content(of: key) != PEM.content(of: account["private_key"] ?? "")
    {
      next["private_key"] = key
      // Azure has no such property, and the id of the former key would be refused.
      next["private_key_id"] = credential["PrivateKeyId"]
    }
    guard next != account else { return [] }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let json = try encoder.encode(next)
    do { configuration.serviceAccount = try ServiceAccountKey(json: Array(json)) } catch {
      let names = ["serviceAccount.private_key": "PrivateKey", "serviceAccount.client_email": "ClientEmail"]
      throw Refusal(.invalidField, "\(credential.name).\(names[error.field] ?? "PrivateKey") \(error.problem)")
    }
    try check(credential, [:]) { try FCMSender(configuration: configuration, logger: runtime.logger) }
    return [Change(platform: .fcm, path: file.path, text: String(decoding: json, as: UTF8.self))]
  }

  private func changes(ofWNS credential: HubCredential) throws -> [Change] {
    try credential.requireOnly(["PackageSid", "SecretKey", "WindowsLiveEndpoint"])
    let settings = hub.service(WNSSettings.self)
    guard let file = settings?.file, var configuration = settings?.configuration else {
      throw unconfigured(credential, "wns.secretFile")
    }
    let present = try stored(credential, "SecretKey") { try file.text() }
    let secret = credential["SecretKey"] ?? present
    switch configuration.flow {
    case .store(let packageSID, _):
      try require(credential, "PackageSid", is: packageSID, "wns.packageSID")
      configuration.flow = .store(packageSID: packageSID, secret: secret)
    case .entra(let tenant, let applicationID, _):
      if credential["PackageSid"] != nil { throw fixed(credential, "PackageSid", "wns.packageSID") }
      configuration.flow = .entra(tenant: tenant, applicationID: applicationID, secret: secret)
    }
    try require(
      credential, "WindowsLiveEndpoint", is: configuration.tokenEndpoint ?? "https://login.live.com/accesstoken.srf",
      "wns.tokenEndpoint")
    try check(credential, ["secret": "SecretKey"]) {
      try WNSSender(configuration: configuration, logger: runtime.logger)
    }
    return secret == present ? [] : [Change(platform: .wns, path: file.path, text: secret)]
  }

  // MARK: Checks

  /// Makes a sender of the configuration, as at the start, and discards it. `names` are the properties of its fields.
  private func check(
    _ credential: HubCredential, _ names: [String: String], _ make: () throws -> any PushSender
  ) throws(Refusal) {
    do { _ = try make() } catch {
      let mistake = error as? PushConfigurationError
      let field = mistake.map { names[$0.field] ?? $0.field }?.split(separator: ".").last.map { ".\($0)" } ?? ""
      throw Refusal(.invalidField, "\(credential.name)\(field) \(mistake?.problem ?? "cannot be used")")
    }
  }

  private func require(
    _ credential: HubCredential, _ property: String, is value: String, _ key: String
  ) throws(Refusal) {
    if let given = credential[property], given != value { throw fixed(credential, property, key) }
  }

  private func fixed(_ credential: HubCredential, _ property: String, _ key: String) -> Refusal {
    Refusal(
      .conflict,
      "\(credential.name).\(property) differs from the configuration; it is changed with hub.\(hub.name).\(key)")
  }

  private func unconfigured(_ credential: HubCredential, _ key: String) -> Refusal {
    Refusal(.conflict, "\(credential.name) cannot be changed: hub.\(hub.name).\(key) is not set on this server")
  }

  private func stored<Value>(
    _ credential: HubCredential, _ property: String, _ read: () throws -> Value
  ) throws(Refusal) -> Value {
    do { return try read() } catch {
      throw Refusal(.conflict, "\(credential.name).\(property) cannot be changed: its present file cannot be read")
    }
  }

  /// Azure's endpoint of a host of APNs, for keys.
  private static func endpoint(of host: String) -> String {
    "https://\(host == "api.sandbox.push.apple.com" ? "api.development.push.apple.com" : host):443/3/device"
  }

  /// The host that APNs has for an endpoint in one of Azure's forms.
  private static func appleHost(of endpoint: String) -> String {
    let host = endpoint.firstRange(of: "://").map { endpoint[$0.upperBound...] } ?? endpoint[...]
    let name = String(host.prefix { $0 != "/" && $0 != ":" })
    return switch name {
    case "gateway.push.apple.com": "api.push.apple.com"
    case "gateway.sandbox.push.apple.com", "api.development.push.apple.com": "api.sandbox.push.apple.com"
    default: name
    }
  }

  // MARK: Files

  /// Writes all files, or none: when one cannot be replaced, those before get their former contents again.
  private func write(_ changes: [Change]) throws(Refusal) {
    var former: [(path: String, data: Data)] = []
    do {
      for change in changes {
        let data = try Data(contentsOf: URL(fileURLWithPath: change.path))
        try Self.write(Data((change.text.trimmingSuffix { $0.isNewline } + "\n").utf8), to: change.path)
        former.append((change.path, data))
      }
    } catch {
      // The error that is reported is the first one.
      for file in former.reversed() { try? Self.write(file.data, to: file.path) }
      throw Refusal(.conflict, "The files of the credentials cannot be written; nothing was changed.")
    }
  }

  private static func write(_ data: Data, to path: String) throws {
    let temporary = "\(path).\(UUID().uuidString)"
    guard FileManager.default.createFile(atPath: temporary, contents: nil, attributes: [.posixPermissions: 0o600]),
      let file = FileHandle(forWritingAtPath: temporary)
    else { throw CocoaError(.fileWriteUnknown) }
    do {
      try file.write(contentsOf: data)
      try file.synchronize()
      try file.close()
      guard LocalFile.move(temporary, to: path) else { throw CocoaError(.fileWriteUnknown) }
    } catch {
      // The error that is reported is the first one.
      try? FileManager.default.removeItem(atPath: temporary)
      throw error
    }
  }
}

/// Private keys as text (RFC 7468).
private enum PEM {
  /// A key with its first and last line, which clients of Azure leave out.
  static func text(ofKey key: String) -> String {
    guard !key.contains("-----BEGIN") else { return key }
    var (lines, rest) = ("", content(of: key)[...])
    while !rest.isEmpty {
      lines += rest.prefix(64) + "\n"
      rest = rest.dropFirst(64)
    }
    return "-----BEGIN PRIVATE KEY-----\n\(lines)-----END PRIVATE KEY-----\n"
  }

  /// The base64 between them, to compare.
  static func content(of text: String) -> String {
    text.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("-----") }.joined().filter { !$0.isWhitespace }
  }
}
