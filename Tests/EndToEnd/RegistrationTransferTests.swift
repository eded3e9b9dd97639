import FanfareCore
import Foundation
import PrivatePostgreSQL
import Registry
import Store
import Support
import Testing

@testable import Roles
@testable import fanfare
@testable import fanfare_dev

/// `fanfare registrations` as a process: imports into and exports from both kinds of registry.
@Suite(.serialized, .timeLimit(.minutes(5))) struct RegistrationTransferTests {
  /// The kinds of registry.
  enum Home: CaseIterable { case sqlite, postgreSQL }

  private static var homes: [Home] { PrivateServer.programs == nil ? [.sqlite] : Home.allCases }

  /// Runs `body` with a directory and the environment of a deployment.
  private func with(_ home: Home, _ body: (URL, [String: String]) async throws -> Void) async throws {
    try await withDirectory("transfer") { directory in
      switch home {
      case .sqlite: try await body(directory, ["FANFARE_REGISTRY_PATH": directory.appending(path: "registry").path])
      case .postgreSQL:
        try await TestPostgreSQL.withSchema { configuration in
          let schema = try #require(configuration.settings["search_path"])
          let url = "\(configuration.connection) options='-c search_path=\(schema)'"
          try await body(directory, ["FANFARE_REGISTRY_POSTGRES_URL": url])
        }
      }
    }
  }

  /// Starts `fanfare registrations`.
  private func start(_ arguments: [String], _ directory: URL, _ environment: [String: String]) throws -> ChildProcess {
    try ChildProcess(
      ["registrations"] + arguments, name: "registrations", environment: environment, program: ChildProcess.product,
      directory: directory, keepsOutput: true)
  }

  /// Runs `fanfare registrations` until it ends.
  private func run(
    _ arguments: [String], _ directory: URL, _ environment: [String: String]
  ) async throws -> (status: Int32, output: String, errors: String) {
    let process = try start(arguments, directory, environment)
    defer { process.destroy() }
    let status = try await process.exitStatus(within: .seconds(120))
    return (status, try process.output(), process.log)
  }

  private func summary(_ output: String) throws -> [String: Int] {
    let object = try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
    return object.compactMapValues { $0 as? Int }
  }

  /// The registrations of a crowd as an export writes them: one per line, by ascending id.
  private func file(_ devices: Int) -> String {
    let crowd = Crowd(devices: devices)
    return (0..<devices).map { crowd.registration($0) }.sorted { $0.id < $1.id }
      .map { String(decoding: $0.json, as: UTF8.self) + "\n" }.joined()
  }

  @Test(arguments: homes) func exportEqualsImport(home: Home) async throws {
    try await with(home) { directory, environment in
      let path = directory.appending(path: "crowd.ndjson").path
      let text = file(3000)
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      let imported = try await run(["import", "--json", "--batch-bytes", "65536", path], directory, environment)
      #expect(imported.status == 0, "\(imported.errors)")
      let counts = try summary(imported.output)
      #expect((counts["read"], counts["imported"], counts["skipped"]) == (3000, 3000, 0))
      let exported = try await run(["export"], directory, environment)
      #expect(exported.status == 0 && exported.output == text)
      let copy = directory.appending(path: "copy.ndjson")
      let written = try await run(
        ["export", "--output", copy.path, "--platform", "wns", "apns"], directory, environment)
      #expect(written.status == 0, "\(written.errors)")
      let lines = text.split(separator: "\n").filter { !$0.contains(#""platform":"fcm""#) }
      #expect(try String(contentsOf: copy, encoding: .utf8).split(separator: "\n") == lines)
      let others = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter {
        $0.hasSuffix(".partial")
      }
      #expect(others.isEmpty)
      let again = try await run(["import", "--json", path], directory, environment)
      #expect(try again.status == 0 && summary(again.output)["unchanged"] == 3000, "\(again.errors)")
      let user = try await run(["export", "--user", "user-7"], directory, environment)
      #expect(
        user.output.split(separator: "\n") == text.split(separator: "\n").filter { $0.contains(#""user":"user-7""#) })
    }
  }

  @Test(arguments: homes) func killedImportContinues(home: Home) async throws {
    try await with(home) { directory, environment in
      let url = directory.appending(path: "crowd.ndjson")
      let text = file(12_000)
      try Data(text.utf8).write(to: url)
      let arguments = ["import", "--json", "--batch-bytes", "16384", url.path]
      let (identity, store) = (
        try #require(try ImportSource(path: url.path).identity), try await open(home, environment)
      )
      var done = 0
      for _ in 0..<2 {
        let process = try start(arguments, directory, environment)
        let least = done
        try await eventually("a few more batches") {
          try await store.finishedBatches(of: identity, hub: .default).count > least + 3
        }
        process.destroy()
        _ = try await process.exitStatus()
        done = try await store.finishedBatches(of: identity, hub: .default).count
      }
      let before = try await store.finishedBatches(of: identity, hub: .default).reduce(0) { $0 + $1.counts.imported }
      #expect(before < 12_000, "it was interrupted")
      let last = try await run(arguments, directory, environment)
      #expect(last.status == 0, "\(last.errors)")
      let counts = try summary(last.output)
      #expect((counts["read"], counts["imported"], counts["readBefore"]) == (12_000, 12_000, before))
      #expect(try await store.finishedBatches(of: identity, hub: .default).isEmpty)
      let exported = try await run(["export"], directory, environment)
      #expect(exported.output == text)
    }
  }

  @Test(arguments: homes) func badLinesAreNamedAndSkipped(home: Home) async throws {
    try await with(home) { directory, environment in
      let url = directory.appending(path: "lines.ndjson")
      let lines = [
        #"{"user":"alice","platform":"fcm","handle":"faceface"}"#,
        #"{"user":"alice","platform":"apns","handle":"facefacex"}"#,
        "",
        #"{"user":"bob","platform":"fcm","handle":"#, String(repeating: "face", count: 20_000),
        #"{"user":"bob","platform":"fcm","handle":"t2","id":"\#(RegistrationID.random())"}"#,
      ]
      try Data(lines.joined(separator: "\n").utf8).write(to: url)
      let first = try await run(["import", "--json", url.path], directory, environment)
      #expect(first.status == 1)
      let counts = try summary(first.output)
      #expect((counts["read"], counts["imported"], counts["skipped"]) == (5, 2, 3))
      let errors = first.errors.split(separator: "\n")
      #expect(errors.map { $0.prefix(while: { $0 != ":" }) } == ["line 2", "line 4", "line 5"], "\(errors)")
      #expect(errors.first?.hasPrefix("line 2: handle must be") == true && !first.errors.contains("face"))
      let limited = try await run(["import", "--max-errors", "1", url.path], directory, environment)
      #expect(limited.status == 1 && limited.errors.contains("--max-errors") && limited.output.isEmpty)
    }
  }

  @Test(arguments: [
    (["import", "/nonexistent/file"], "<file>"), (["import", "--max-errors", "-1"], "--max-errors"),
    (["import", "--hub", "no such"], "--hub"), (["export", "--hub", "other"], "--hub"),
    (["export", "--user", "a:b"], "--user"),
    (["export", "--platform", "pager"], "--platform"), (["export", "--output", "/nonexistent/file"], "--output"),
    (["export", "--output", "."], "--output"), (["export", "--output", "/dev/null"], "--output"),
  ])
  func badOptionIsNamed(arguments: [String], option: String) async throws {
    try await with(.sqlite) { directory, environment in
      let (status, _, errors) = try await run(arguments, directory, environment)
      #expect(status == 64 && errors.contains(option), "\(errors)")
    }
  }

  /// A file that is left behind would contain handles of devices.
  @Test(TestPostgreSQL.isAvailable) func interruptedExportLeavesNoFile() async throws {
    try await with(.postgreSQL) { directory, environment in
      _ = try await open(.postgreSQL, environment)
      let settings = try Settings.load(file: nil, environment: environment)
      let pool = try PostgreSQLPool(
        try #require(settings.registry.database(role: "registrations", patience: .zero)),
        logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      let lock = try await HeldLock("LOCK TABLE registrations", in: pool)
      // There is no sign of when the process has received the signal; the server ends its wait some time later.
      let impatient = environment.merging(["FANFARE_REGISTRY_POSTGRES_STATEMENT_SECONDS": "5"]) { $1 }
      let export = try start(["export", "--output", "devices.ndjson"], directory, impatient)
      defer { export.destroy() }
      try await lock.waitUntilAwaited()
      func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasPrefix("devices") }
      }
      #expect(try names() == ["devices.ndjson.\(export.id).partial"])
      export.signal(SIGINT)
      #expect(try await export.exitStatus() == 128 + SIGINT, "\(export.log)")
      #expect(try names() == [])
      try await lock.release()
    }
  }

  /// An export from a wrong path would look like an export of an empty registry.
  @Test(arguments: [["export"], ["export", "--output", "copy"], ["tombstones"]])
  func exportDoesNotCreateRegistry(arguments: [String]) async throws {
    try await with(.sqlite) { directory, environment in
      let path = try #require(environment["FANFARE_REGISTRY_PATH"])
      let (status, output, errors) = try await run(arguments, directory, environment)
      #expect(status == 78 && output.isEmpty)
      #expect(errors.contains("fanfare: registry.path names no registry: \(path)"), "\(errors)")
      let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
      #expect(!names.contains { $0.hasPrefix("registry") || $0.hasPrefix("copy") }, "\(names)")
    }
  }

  /// Runs an import of no registrations, which prints a summary, with standard output redirected by the shell.
  private func report(
    to redirection: String, before preparation: String = ":"
  ) async throws -> (status: Int32, errors: String) {
    try await withDirectory("output") { directory in
      let script = "\(preparation) && exec \"$0\" registrations import --json /dev/null \(redirection)"
      let process = try ChildProcess(
        ["-c", script, ChildProcess.product.path], name: "report", environment: ["FANFARE_REGISTRY_PATH": "registry"],
        program: URL(fileURLWithPath: "/bin/sh"), directory: directory)
      defer { process.destroy() }
      return (try await process.exitStatus(within: .seconds(120)), process.log)
    }
  }

  @Test func fullDiskFailsTheCommand() async throws {
    let full = try await report(to: ">/dev/full")
    #expect(full.status == 1 && full.errors.contains("fanfare: standard output is incomplete: "), "\(full.errors)")
    let whole = try await report(to: ">/dev/null")
    #expect(whole.status == 0 && !whole.errors.contains("standard output"), "\(whole.errors)")
  }

  @Test func closedPipeIsNoFailure() async throws {
    // The pipe is open for writing and no longer open for reading.
    let closed = try await report(
      to: ">&4", before: "mkfifo pipe && exec 3<>pipe 4>pipe && exec 3>&- && trap '' PIPE")
    #expect(closed.status == 0 && !closed.errors.contains("standard output"), "\(closed.errors)")
  }

  private func open(_ home: Home, _ environment: [String: String]) async throws -> any RegistrySettings.Store {
    let settings = try Settings.load(file: nil, environment: environment)
    return try await settings.registry.open(role: "test", patience: .seconds(60), logger: TestPostgreSQL.quietLogger)
  }
}
