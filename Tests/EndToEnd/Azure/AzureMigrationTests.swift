import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// `fanfare azure import`: a hub's registrations move from one Fanfare, which plays Azure, to another.
@Suite(.serialized, .timeLimit(.minutes(3))) struct AzureMigrationTests {
  @Test func registrationsMoveWithTagsTemplatesAndIDs() async throws {
    try await AzureSettings.withDeployment(["FANFARE_AZURE_PREFIX": "anh/v1"]) { azure, api in
      var door = AzureDoor(api)
      door.prefix = "/anh/v1"
      try await Self.populate(door)
      let from = azure.directory.appending(path: "connection")
      try Data(door.connectionString().utf8).write(to: from)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: from.path)
      try await withDirectory("migration") { directory in
        let own = ["FANFARE_REGISTRY_PATH": directory.appending(path: "registry.sqlite").path]
        let spool = directory.appending(path: "spool.ndjson").path
        let command = ["azure", "import", "--from", from.path, "--azure-hub", "default", "--spool", spool, "--json"]

        // Killed while it waits, after the first page.
        let first = try azure.start(command + ["--rate", "1"], own)
        defer { first.destroy() }
        try await eventually("the first page in the spool") {
          // There is none before the first page.
          (try? String(contentsOfFile: "\(spool).progress", encoding: .utf8))?.contains(#""count":100"#) == true
        }
        first.destroy()
        let (status, output, errors) = try await azure.run(command, own)
        #expect(status == 0, "\(errors)")
        #expect(errors.contains("continues with the spool: "), "\(errors)")
        let summary = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] ?? [:]
        let imported = summary["imported"] as? [String: Any]
        #expect(imported?["imported"] as? Int == Self.count && summary["leftOut"] as? Int == 0, "\(summary)")
        #expect(!FileManager.default.fileExists(atPath: spool))

        let before = try await Self.export(azure, [:])
        #expect(before.count == Self.count)
        #expect(try await Self.export(azure, own) == before)

        // Meanwhile one device is another user's here, and another one has other tags at Azure.
        let renewed = try #require(before.first { $0["handle"] as? String == AzureSettings.handle("moves4", .apns) })
        let mine = try #require(renewed.mutableCopy() as? NSMutableDictionary)
        mine["user"] = "carol"
        mine["tags"] = ["news"]
        let line = directory.appending(path: "renewed.ndjson")
        try JSONSerialization.data(withJSONObject: mine).write(to: line)
        #expect(try await azure.run(["registrations", "import", line.path], own).status == 0)
        let backend = TutorialBackend(door: door)
        let changed = try await backend.register(
          "207-777-1", AzureSettings.handle("moves7", .apns), AzureDialect.all[1], user: "user-7", tags: ["changed"])
        #expect(changed.status == 200, "\(changed.body)")

        // Registrations that were renewed here since the first import stay; the others follow Azure.
        let asOf = try #require(summary["asOf"] as? String)
        let again = try await azure.run(command + ["--as-of", asOf], own)
        #expect(again.status == 0, "\(again.errors)")
        let second = try JSONSerialization.jsonObject(with: Data(again.output.utf8)) as? [String: Any] ?? [:]
        let counts = second["imported"] as? [String: Any]
        #expect(counts?["outdated"] as? Int == 1 && counts?["replaced"] as? Int == 1, "\(second)")
        let after = try await Self.export(azure, own)
        let kept = after.first { $0["id"] as? String == renewed["id"] as? String }
        #expect(kept?["user"] as? String == "carol", "\(String(describing: kept))")
        let source = try await Self.export(azure, [:])
        #expect(
          after.filter { $0["id"] as? String != renewed["id"] as? String }
            == source.filter { $0["id"] as? String != renewed["id"] as? String })
      }
    }
  }

  private static let count = 255

  /// Registrations with ids in Azure's form, with templates and variables, and installations.
  private static func populate(_ door: AzureDoor) async throws {
    let backend = TutorialBackend(door: door)
    for number in 0..<250 {
      let dialect = AzureDialect.all[number % 3]
      let answer = try await backend.register(
        "20\(number)-77\(number)-1", AzureSettings.handle("moves\(number)", dialect.platform), dialect,
        user: "user-\(number % 40)", tags: ["news", "group-\(number % 7)"])
      #expect(answer.status == 200, "\(answer.body)")
    }
    let template = #"{"aps":{"alert":"$(message)"}}"#.replacing("\"", with: "\\\"")
    let installation = """
      {"installationId":"phone-1","platform":"apns","pushChannel":"\(AzureSettings.handle("phone", .apns))",\
      "tags":["news"],"pushVariables":{"name":"Bob"},"templates":{"greeting":{"body":"\(template)"}}}
      """
    let answer = try await door.send(
      "PUT", "/installations/phone-1", headers: [("Content-Type", "application/json")], body: installation)
    #expect(answer.status == 200, "\(answer.body)")
    // A computer with a tile of its own channel.
    let computer = """
      {"installationId":"desk-1","platform":"wns","pushChannel":"\(AzureSettings.handle("desk", .wns))","tags":["news"],\
      "secondaryTiles":{"score":{"pushChannel":"\(AzureSettings.handle("tile", .wns))","tags":["sport"]}}}
      """
    let tile = try await door.send(
      "PUT", "/installations/desk-1", headers: [("Content-Type", "application/json")], body: computer)
    #expect(tile.status == 200, "\(tile.body)")
    // A device of nobody.
    let entry = """
      <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><GcmRegistrationDescription \
      xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"><GcmRegistrationId>lonely\
      </GcmRegistrationId></GcmRegistrationDescription></content></entry>
      """
    let created = try await door.send(
      "POST", "/registrations", headers: [("Content-Type", "application/atom+xml;type=entry;charset=utf-8")],
      body: entry)
    #expect(created.status == 200, "\(created.body)")
  }

  /// The registrations as an export writes them, without the times.
  private static func export(_ deployment: Deployment, _ variables: [String: String]) async throws -> [NSDictionary] {
    let (status, output, errors) = try await deployment.run(["registrations", "export"], variables)
    #expect(status == 0, "\(errors)")
    return try output.split(separator: "\n").map { line in
      var object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
      for time in ["registeredAt", "createdAt", "lastSeen"] { object[time] = nil }
      return object as NSDictionary
    }
  }
}
