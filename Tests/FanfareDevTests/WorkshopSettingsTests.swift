import Foundation
import PushSimulator
import SettingsTable
import Testing

@testable import Roles
@testable import fanfare_dev

@Suite struct WorkshopSettingsTests {
  private static let example = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "deploy/fanfare-dev.yaml")

  private static func load(_ yaml: String) async throws -> WorkshopSettings {
    let file = FileManager.default.temporaryDirectory.appending(path: "fanfare-settings-\(UUID()).yaml")
    try yaml.write(to: file, atomically: true, encoding: .utf8)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: file) } }
    return try Settings.withWorkshop {
      try Settings.load(file: file.path, environment: [:], readFurther: $0)
    }.1
  }

  @Test func everyKeyThatIsReadIsDeclared() throws {
    let reader = SettingsReader([])
    _ = try WorkshopSettings(from: reader)
    #expect(Set(WorkshopSettings.declarations.flatMap { $0.dottedKeys(of: "") }) == reader.keys)
  }

  @Test func exampleIsUsable() async throws {
    let example = try await Self.load(try String(contentsOf: Self.example, encoding: .utf8))
    #expect(example.simulator.configuration.notificationsPerDevice == 50 && example.broker.brokers == 1)
  }

  @Test(arguments: [
    ("kafka: {embedded: perhaps}", "kafka.embedded must be true or false"),
    ("simulator: {host: '::1'}", "simulator.host must be 127.0.0.1 or localhost"),
    ("broker: {brokers: 10}", "broker.brokers must be a whole number from 1 to 9"),
    ("simulator: {port: 1}", "simulator.port is not a known key; simulator.host is the nearest one"),
  ])
  func badValueIsNamedByItsKey(yaml: String, message: String) async throws {
    let error = await #expect(throws: SettingsError.self) { try await Self.load(yaml) }
    #expect(error?.description == message)
  }
}
