import FoundationEssentials
import SettingsTable

/// The credential as clients of Azure Notification Hubs know it, `FcmV1Credential`.
extension FCMSettings {
  package var identity: [String: String]? {
    guard let file else { return nil }
    do {
      let account = try Self.members(of: file)
      var values: [String: String] = [:]
      (values["projectid"], values["clientemail"]) = (account["project_id"], account["client_email"])
      return values
    } catch { return nil }
  }

  package func files(replacedBy update: CredentialUpdate) throws -> [CredentialUpdate.File] {
    try update.requireOnly(["ProjectId", "PrivateKey", "ClientEmail", "PrivateKeyId"])
    guard let file, var configuration else { throw update.unconfigured("serviceAccountFile") }
    let account = try update.stored("PrivateKey") { try Self.members(of: file) }
    try update.require("ProjectId", is: account["project_id"] ?? "", "serviceAccountFile")
    var next = account
    next["client_email"] = update["ClientEmail"] ?? account["client_email"]
    if let key = update["PrivateKey"].map({ PEM.text(ofKey: $0.replacing("\\n", with: "\n")) }),
      PEM.content(of: key) != PEM.content(of: account["private_key"] ?? "")
    {
      next["private_key"] = key
      // Azure has no such property, and the id of the former key would be refused.
      next["private_key_id"] = update["PrivateKeyId"]
    }
    guard next != account else { return [] }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let json = try encoder.encode(next)
    do { configuration.serviceAccount = try ServiceAccountKey(json: Array(json)) } catch {
      let names = ["serviceAccount.private_key": "PrivateKey", "serviceAccount.client_email": "ClientEmail"]
      throw update.invalid(names[error.field] ?? "PrivateKey", error.problem)
    }
    try update.check([:]) { try FCMSender(configuration, $0) }
    return [CredentialUpdate.File(path: file.path, text: String(decoding: json, as: UTF8.self))]
  }

  private static func members(of file: SecretFile) throws -> [String: String] {
    try JSONDecoder().decode([String: String].self, from: Data(try file.text().utf8))
  }
}
