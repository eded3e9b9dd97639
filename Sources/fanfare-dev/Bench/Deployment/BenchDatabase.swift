import FanfareCore
import FoundationEssentials
import PrivatePostgreSQL
import Registry
import Store

/// A PostgreSQL server with registries for a measurement: a private one, or the one the user named.
final class BenchDatabase: Sendable {
  /// A registry that contains a crowd.
  struct Filled {
    let crowd: Crowd
    let registry: RegistryDatabase
    /// The registry in a process's settings.
    let settings: String
    /// The time to fill it and to build its keys.
    let loading: Duration
  }

  private let rig: BenchRig
  private let server: PrivateServer?
  private let connection: String
  private let prefix: String

  /// Starts a server unless the user named one; nil if PostgreSQL is not installed.
  ///
  /// The default settings suit a registry that is filled first and queried afterwards; `settings` override them.
  init?(_ rig: BenchRig, settings: [String: String] = [:]) throws {
    self.rig = rig
    prefix = "bench_\(ProcessInfo.processInfo.processIdentifier)_\(UInt32.random(in: 0...UInt32.max))"
    if let postgres = rig.options.postgres {
      (server, connection) = (nil, postgres)
    } else {
      guard PrivateServer.programs != nil else { return nil }
      // A third of this machine's memory, as an operator would give to a server with this many registrations. The log
      // is minimal, because the data can be loaded again.
      let megabytes = max(128, Int(ProcessInfo.processInfo.physicalMemory / 3_000_000))
      let common = [
        "shared_buffers": "\(rig.options.isQuick ? 128 : megabytes)MB", "maintenance_work_mem": "1GB",
        "wal_level": "minimal",
        "max_wal_senders": "0", "max_wal_size": "16GB", "checkpoint_timeout": "1h", "autovacuum": "off",
        // The server waits for the disk, as one in production does.
        "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
        // Log files need no zeros, because they are overwritten anyway.
        "wal_init_zero": "off",
      ]
      let server = try PrivateServer(settings: common.merging(settings) { $1 })
      (self.server, connection) = (server, server.connection)
    }
  }

  /// Runs `body` with a registry for each crowd, and drops the registries afterwards.
  func withRegistries<Value>(of crowds: [Crowd], _ body: ([Filled]) async throws -> Value) async throws -> Value {
    var filled: [Filled] = []
    let result: Result<Value, any Error>
    do {
      for crowd in crowds { filled.append(try await fill(crowd)) }
      result = .success(try await body(filled))
    } catch { result = .failure(error) }
    for filled in filled { filled.registry.close() }
    if server == nil { for crowd in crowds { try await schema(crowd).drop() } }
    return try result.get()
  }

  /// Runs `body` with the connection string of an empty schema, and drops the schema afterwards.
  func withEmptySchema<Value>(_ body: (_ connection: String) async throws -> Value) async throws -> Value {
    let schema = OwnSchema("\(prefix)_empty", in: connection, logger: rig.logger)
    let result: Result<Value, any Error>
    do {
      try await schema.create()
      result = .success(try await body(schema.connection))
    } catch { result = .failure(error) }
    try await schema.drop()
    return try result.get()
  }

  private func schema(_ crowd: Crowd) -> OwnSchema {
    OwnSchema("\(prefix)_\(crowd.devices)", in: connection, logger: rig.logger)
  }

  /// Runs a checkpoint on the private server, so that it writes dirty pages and reuses its log files.
  func settle() async throws {
    guard server != nil else { return }
    let pool = try PostgreSQLPool(PostgreSQLConfiguration(connection: connection), logger: rig.logger)
    defer { pool.close() }
    _ = try await pool.withConnection { try $0.execute("CHECKPOINT").affected }
  }

  private func fill(_ crowd: Crowd) async throws -> Filled {
    let schema = schema(crowd)
    try await schema.create()
    let registry = try await RegistryDatabase(schema.configuration, logger: rig.logger)
    let pool = try PostgreSQLPool(schema.configuration, logger: rig.logger)
    defer { pool.close() }
    let start = ContinuousClock.now
    try await crowd.load(into: pool)
    return Filled(
      crowd: crowd, registry: registry, settings: #"{postgres: {url: "\#(schema.connection)"}}"#,
      loading: .now - start)
  }
}
