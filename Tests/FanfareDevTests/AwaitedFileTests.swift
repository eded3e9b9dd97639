import EmbeddedKafka
import Foundation
import RDKafka
import SettingsTable
import Support
import Testing

@testable import Roles
@testable import fanfare_dev

/// A role may start before the broker and the simulator have written the files that it needs.
@Suite(.timeLimit(.minutes(1))) struct AwaitedFileTests {
  private static let message = "Waiting for a file that another process writes"

  @Test func waitsForFileThatIsWrittenLater() async throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "fanfare-awaited-\(UUID())")
    let (log, file) = (LogRecorder(), AwaitedFile(key: "kafka.bootstrapServersFile", path: url.path) { _ in [] })
    async let appearance: Void = file.appear(within: .seconds(3600), logger: log.logger)
    while log.count(of: Self.message) == 0 {
      try Task.checkCancellation()
      await Task.yield()
    }
    try Data("broker:1\n".utf8).write(to: url, options: .atomic)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: url) } }
    try await appearance
    #expect(log.count(of: Self.message) == 1)
    #expect(log.text.contains("kafka.bootstrapServersFile") && log.text.contains(url.path))
    // An existing file is read without a wait.
    try await file.appear(logger: log.logger)
    #expect(log.count(of: Self.message) == 1)
  }

  /// All roles were stopped and start again in the same directory: no process listens on the addresses in its files.
  @Test(arguments: [false, true]) func fileOfEarlierRunIsIgnored(isSimulators: Bool) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-awaited-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let broker = directory.appending(path: "broker")
    let settings = try Settings.load(
      file: nil,
      environment: [
        "FANFARE_KAFKA_BOOTSTRAP_SERVERS_FILE": broker.path, "FANFARE_HUB_DEFAULT_SIMULATOR": directory.path,
      ])
    func write(_ servers: String) throws {
      let address = servers.split(separator: ":")
      let endpoints = #"{"host":"\#(address[0])","ports":{},"httpsPort":1,"adminPort":\#(address[1])}"#
      try Data("\(servers)\n".utf8).write(to: broker, options: .atomic)
      try Data(endpoints.utf8).write(to: directory.appending(path: "endpoints.json"), options: .atomic)
    }
    let present = try #require(try TestKafka.embedded().cluster)
    defer { present.close() }
    // Nothing listens on port 1.
    try write("127.0.0.1:1")
    let file = try #require(isSimulators ? AwaitedFile(of: settings.hubs[0]) : AwaitedFile(of: settings.kafka))
    let log = LogRecorder()
    async let appearance: Void = file.appear(within: .seconds(3600), logger: log.logger)
    while log.count(of: Self.message) == 0 {
      try Task.checkCancellation()
      await Task.yield()
    }
    try write(present.bootstrapServers)
    try await appearance
  }

  /// The reader of the file then throws an error with the key.
  @Test func waitForMissingFileEnds() async throws {
    let settings = try Settings.load(
      file: nil, environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS_FILE": "/nonexistent/broker"])
    try await AwaitedFile(of: settings.kafka)?.appear(within: .zero, logger: LogRecorder().logger)
    let error = #expect(throws: SettingsError.self) { try settings.kafka.client("test") }
    #expect(error?.description == "kafka.bootstrapServersFile names a file that cannot be read: /nonexistent/broker")
  }

  @Test func waitsOnlyForFilesOfOtherProcesses() async throws {
    let names = ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "FANFARE_HUB_DEFAULT_SIMULATOR": "keys"]
    let settings = try Settings.load(file: nil, environment: names)
    #expect(AwaitedFile(of: settings.kafka) == nil)
    #expect(settings.hubs.map { AwaitedFile(of: $0)?.path } == ["keys/endpoints.json"])
    #expect(settings.hubs.map { AwaitedFile(of: $0)?.key } == ["hub.default.simulator"])
    let plain = try Settings.load(file: nil, environment: [:])
    #expect(AwaitedFile(of: plain.kafka) == nil && plain.hubs.allSatisfy { AwaitedFile(of: $0) == nil })
  }
}
