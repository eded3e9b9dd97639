import AzureHub
import FanfareCore
import Foundation
import FrontEnd
import Logging
import PushServices
import PushSimulator
import Support
import Testing

@testable import Roles

/// Files of credentials that a client of Azure replaces, and the senders that read them again.
@Suite struct CredentialFilesTests {
  /// A folder with the credentials of a hub, and settings that name them.
  private struct Fixture: Sendable {
    let folder: URL
    let present: SimulatorCredentials
    let next: SimulatorCredentials
    let settings: Settings

    var hub: HubSettings { settings.hubs[0] }
    var files: CredentialFiles { CredentialFiles(of: hub, Runtime(settings: settings, logger: TestKafka.quietLogger)) }

    static func run(secret: String = "secret", _ body: (Fixture) async throws -> Void) async throws {
      let folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-credentials-\(UUID())")
      let present = try SimulatorCredentials.generate()
      try present.write(to: folder.path)
      defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: folder) } }
      for (name, text) in [("keyid", "\(present.apns.keyID)\n"), (secret, "old-secret\n")] {
        try Data(text.utf8).write(to: folder.appending(path: name))
        try FileManager.default.setAttributes(
          [.posixPermissions: 0o600], ofItemAtPath: folder.appending(path: name).path)
      }
      let yaml = """
        kafka: {bootstrapServers: "127.0.0.1:1"}
        azure: {enabled: true}
        hub:
          default:
            authentication: {method: none}
            azure: {updatesCredentials: true}
            apns:
              keyFile: \(folder.path)/\(SimulatorCredentials.FileName.apnsKey)
              keyIDFile: \(folder.path)/keyid
              teamID: \(present.apns.teamID)
              topic: com.example.app
            fcm: {serviceAccountFile: \(folder.path)/\(SimulatorCredentials.FileName.serviceAccount)}
            wns: {secretFile: \(folder.path)/\(secret), packageSID: "ms-app://s-1-15-2-1"}
        """
      let file = folder.appending(path: "fanfare.yaml")
      try Data(yaml.utf8).write(to: file)
      let settings = try Settings.load(file: file.path, environment: [:])
      try await body(
        Fixture(folder: folder, present: present, next: try SimulatorCredentials.generate(), settings: settings))
    }

    /// The contents of all files by their names.
    func contents() throws -> [String: Data] {
      var contents: [String: Data] = [:]
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
        contents[name] = try Data(contentsOf: folder.appending(path: name))
      }
      return contents
    }

    /// All three credentials, with the key for APNs in Azure's form: without its first and last line.
    var update: [HubCredential] {
      [
        HubCredential(
          .apns, name: "ApnsCredential",
          [
            "token": next.apns.privateKeyPEM.split(separator: "\n").dropFirst().dropLast().joined(),
            "keyid": "ZYXWVUTSRQ", "appid": present.apns.teamID, "appname": "com.example.app",
            "endpoint": "https://api.push.apple.com:443/3/device",
          ]),
        HubCredential(
          .fcm, name: "FcmV1Credential",
          [
            "projectid": present.google.projectID, "clientemail": present.google.clientEmail,
            "privatekey": next.google.privateKeyPEM.replacing("\n", with: "\\n"),
          ]),
        HubCredential(
          .wns, name: "WnsCredential", ["packagesid": "ms-app://s-1-15-2-1", "secretkey": "new-secret"]),
      ]
    }
  }

  @Test func identitiesAreThoseThatAnUpdateMayRepeat() async throws {
    try await Fixture.run { fixture in
      let identities = await fixture.files.identities()
      #expect(identities.map(\.name) == ["ApnsCredential", "FcmV1Credential", "WnsCredential"])
      #expect(identities[0]["KeyId"] == fixture.present.apns.keyID && identities[0]["AppName"] == "com.example.app")
      #expect(identities[0]["Endpoint"] == "https://api.push.apple.com:443/3/device" && identities[0]["Token"] == nil)
      #expect(identities[1]["ClientEmail"] == fixture.present.google.clientEmail && identities[1]["PrivateKey"] == nil)
      #expect(identities[2]["PackageSid"] == "ms-app://s-1-15-2-1" && identities[2]["SecretKey"] == nil)
      #expect(try await fixture.files.replace(identities) == [])
      try FileManager.default.removeItem(
        at: fixture.folder.appending(path: SimulatorCredentials.FileName.serviceAccount))
      #expect(await fixture.files.identities().map(\.name) == ["ApnsCredential", "WnsCredential"])
    }
  }

  @Test func theSendersUseCredentialsThatWereReplaced() async throws {
    try await Fixture.run { fixture in
      let senders = try fixture.hub.senders(Runtime(settings: fixture.settings, logger: TestKafka.quietLogger))
      let watches = fixture.hub.credentialWatches(of: senders, logger: TestKafka.quietLogger)
      #expect(watches.count == 3)
      for watch in watches { #expect(try !watch.use(), "nothing has changed") }
      let names = Set(try fixture.contents().keys)
      #expect(try await fixture.files.replace(fixture.update) == [.apns, .fcm, .wns])
      for watch in watches { #expect(try watch.use() == true) }
      #expect(Set(try fixture.contents().keys) == names, "no temporary file is left")
      for name in ["keyid", "secret", SimulatorCredentials.FileName.apnsKey] {
        let attributes = try FileManager.default.attributesOfItem(atPath: fixture.folder.appending(path: name).path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
      }
      // The same again changes nothing.
      let after = try fixture.contents()
      #expect(try await fixture.files.replace(fixture.update) == [])
      #expect(try fixture.contents() == after)
      #expect(String(decoding: after["secret"] ?? Data(), as: UTF8.self) == "new-secret\n")
    }
  }

  @Test(arguments: [
    (0, "token", "no key", ProblemCode.invalidField, "ApnsCredential.Token"),
    (0, "keyid", "short", .invalidField, "ApnsCredential.KeyId"),
    (0, "appid", "AAAAAAAAAA", .conflict, "ApnsCredential.AppId"),
    (0, "appname", "com.example.other", .conflict, "ApnsCredential.AppName"),
    (0, "endpoint", "https://api.development.push.apple.com:443/3/device", .conflict, "ApnsCredential.Endpoint"),
    (0, "certificatekey", "x", .invalidField, "ApnsCredential.certificatekey"),
    (1, "privatekey", "no key", .invalidField, "FcmV1Credential.PrivateKey"),
    (1, "projectid", "another", .conflict, "FcmV1Credential.ProjectId"),
    (2, "packagesid", "ms-app://s-1-15-2-2", .conflict, "WnsCredential.PackageSid"),
    (2, "secretkey", "a b\u{7}", .invalidField, "WnsCredential.SecretKey"),
    (2, "windowsliveendpoint", "https://example.com", .conflict, "WnsCredential.WindowsLiveEndpoint"),
  ])
  func aWrongPropertyIsNamedAndNothingIsChanged(
    index: Int, property: String, value: String, code: ProblemCode, name: String
  ) async throws {
    try await Fixture.run { fixture in
      let before = try fixture.contents()
      var update = fixture.update
      let wrong = update.remove(at: index)
      var values = ["token", "keyid", "appid", "appname", "endpoint", "projectid", "clientemail", "privatekey"]
        .reduce(into: [String: String]()) { $0[$1] = wrong[$1] }
      values[property] = value
      update.append(HubCredential(wrong.platform, name: wrong.name, values))
      do {
        _ = try await fixture.files.replace(update)
        Issue.record("\(property) was accepted")
      } catch let refusal as Refusal {
        #expect(refusal.code == code && refusal.detail.hasPrefix(name), "\(refusal.detail)")
        #expect(!refusal.detail.contains(value))
      }
      #expect(try fixture.contents() == before)
    }
  }

  /// The last file has the longest name that a file can have: there can be no temporary file beside it.
  @Test func filesBeforeOneThatCannotBeReplacedGetTheirContentsBack() async throws {
    try await Fixture.run(secret: String(repeating: "s", count: 255)) { fixture in
      let before = try fixture.contents()
      await #expect(throws: Refusal.self) { try await fixture.files.replace(fixture.update) }
      #expect(try fixture.contents() == before)
    }
  }
}
