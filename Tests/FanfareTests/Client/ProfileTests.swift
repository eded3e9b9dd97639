import Foundation
import SettingsTable
import Support
import Testing

@testable import Roles
@testable import fanfare

/// Address and credentials of the commands that are clients of the HTTP API.
@Suite struct ProfileTests {
  private static let mark = "marked-secret"

  private func profile(_ yaml: String, mode: Int = 0o600, environment: [String: String] = [:]) throws -> Profile {
    let file = FileManager.default.temporaryDirectory.appending(path: "fanfare-profile-\(UUID()).yaml")
    try yaml.write(to: file, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: file) } }
    return try Profile(path: file.path, environment: environment)
  }

  @Test func fileGivesAddressAndKey() throws {
    let profile = try profile("url: https://push.example.com/\nkey: fanfare_abc\nhub: news\n")
    #expect(profile.url == "https://push.example.com" && profile.hub == "news")
    guard case .key("fanfare_abc") = profile.credentials else {
      Issue.record("no key")
      return
    }
  }

  @Test func environmentWinsOverTheFile() throws {
    let profile = try profile(
      "{url: 'https://a.example.com', user: alice, password: x}",
      environment: ["FANFARE_URL": "http://127.0.0.1:8080", "FANFARE_KEY": "fanfare_abc"])
    #expect(profile.url == "http://127.0.0.1:8080")
    guard case .key("fanfare_abc") = profile.credentials else {
      Issue.record("no key")
      return
    }
  }

  @Test(arguments: [0o644, 0o640, 0o604]) func readableProfileIsRefused(mode: Int) throws {
    // root's group may read root's files, as for every secret of the configuration.
    guard mode != 0o640 || geteuid() != 0 else { return }
    let error = #expect(throws: SettingsError.self) {
      try profile("url: https://a.example.com\nkey: \(Self.mark)\n", mode: mode)
    }
    let text = try #require(error?.description)
    #expect(text.contains("others may use it") && text.contains("chmod 600") && !text.contains(Self.mark))
  }

  @Test func optionIsNamedWithItsFile() throws {
    let missing = #expect(throws: SettingsError.self) {
      try Profile(path: "/nonexistent/profile.yaml", environment: [:])
    }
    #expect(missing?.description.contains("--profile") == true && missing?.description.contains("--config") == false)
    for yaml in ["- a\n", "a: [\n", "1: x\n"] {
      let error = #expect(throws: SettingsError.self) { try profile(yaml) }
      #expect(error?.description.contains("--config") == false, "\(yaml): \(error?.description ?? "")")
    }
  }

  @Test func allMistakesAreNamedWithoutSecrets() throws {
    let error = #expect(throws: SettingsError.self) {
      try profile("url: http://push.example.com\nkye: \(Self.mark)\nuser: a:b\n")
    }
    #expect(error?.mistakes.map(\.key).sorted() == ["kye", "password", "url", "user"])
    #expect(error?.mistakes.first { $0.key == "kye" }?.line.contains(":2: kye is not a known key; key is the") == true)
    #expect(error?.description.contains(Self.mark) == false)
  }

  @Test func missingAddressSaysWhereToGiveIt() throws {
    let error = #expect(throws: SettingsError.self) {
      try Profile(path: nil, environment: ["HOME": "/nonexistent", "FANFARE_KEY": Self.mark])
    }
    #expect(
      error?.description == "url is missing: the address of the HTTP API, in "
        + "/nonexistent/.config/fanfare/profile.yaml or in FANFARE_URL")
  }

  /// Neither the profile nor the errors of its client show the credentials.
  @Test func credentialsAreNotPrinted() async throws {
    let profile = try Profile(
      path: nil,
      environment: ["HOME": "/nonexistent", "FANFARE_URL": "http://127.0.0.1:1", "FANFARE_KEY": Self.mark])
    let error = await #expect(throws: APIUnreachable.self) {
      try await APIClient.with(profile, hub: nil) { try await $0.call(.GET, "/api/sends") }
    }
    #expect(
      error?.description
        == "http://127.0.0.1:1 (url of the profile, FANFARE_URL) cannot be used: Connection refused"
        || error?.description.contains("cannot be used: ") == true)
    var dumped = ""
    dump(profile, to: &dumped)
    for text in [dumped, "\(profile)", String(reflecting: profile), "\(error as Any)"] {
      #expect(!text.contains(Self.mark), "\(text)")
    }
  }
}
