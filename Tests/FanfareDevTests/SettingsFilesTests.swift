import FanfareCore
import Foundation
import Testing

@testable import Roles
@testable import fanfare_dev

@Suite struct SettingsFilesTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  @Test(arguments: SettingsFiles.all.map(\.path)) func filesAreThoseOfTheDeclarations(path: String) throws {
    let text = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
    let present = SettingsFiles.all.first { $0.path == path }?.text
    #expect(text == present, "\(path) is outdated: run `fanfare-dev settings`")
  }

  @Test func exampleIsUsable() async throws {
    let settings = try Settings.load(
      file: Self.root.appending(path: "deploy/fanfare.yaml").path, environment: [:])
    #expect(settings.kafka.bootstrapServers == "127.0.0.1:9092" && settings.hubs.map(\.name.rawValue) == ["default"])
  }

  /// An empty mapping would be refused.
  @Test func sectionsWithoutDefaultsAreCommentedOut() throws {
    let text = try #require(SettingsFiles.all.first { $0.path == "deploy/fanfare.yaml" }?.text)
    #expect(text.contains("\n# hook:\n#   audit:\n#     url: https://hooks.example.com/fanfare"))
    #expect(text.contains("\n  # tls:\n  #   certificateFile: "))
  }
}
