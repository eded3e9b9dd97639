import FanfareCore
package import Logging
package import Store

/// The registry in a SQLite file, which processes on one machine may share, or in a PostgreSQL database, which any
/// number of machines share.
///
/// Every change is one transaction. In PostgreSQL it locks its rows in a fixed order: the installation, the handle, the
/// registration. So two claims of the same handle are serialised, and the decision of each is still valid when it
/// writes. Where the order cannot be kept, the server detects the deadlock and the cancelled transaction is retried.
package final class RegistryDatabase: Sendable {
  private let store: Store
  private let purges: PurgeSchedule
  let limits: RegistrationLimits
  let logger: Logger
  let tagWeights = TagWeights()
  let templates = TemplateCache()

  /// Opens the file and creates or migrates its tables. Blocks for up to about twice the busy timeout: call it before
  /// serving starts.
  ///
  /// Throws `RegistryFileError` when the file can never be used, and `RegistryError` when a later attempt may succeed.
  /// Both name the path and the reason.
  package init(_ configuration: SQLiteRegistryConfiguration, logger: Logger = .silent) throws {
    do { store = try Store(configuration.file, name: Self.name, RegistrySchema.migration) } catch {
      let message = "cannot open the registry \(configuration.path): \(Store.reason(of: error))"
      throw Store.isFinal(error) ? RegistryFileError(message) : RegistryError(.unavailable, message)
    }
    purges = PurgeSchedule(tombstoneLifetime: configuration.tombstoneLifetime)
    limits = configuration.limits
    self.logger = logger
  }

  /// Connects and creates or migrates the tables. Throws `PostgreSQLError`, except when the database is unavailable and
  /// `waits` is set: then the first call that reaches the database migrates it.
  package init(
    _ configuration: PostgreSQLConfiguration, tombstoneLifetime: Duration = .seconds(30 * 86_400),
    limits: RegistrationLimits = RegistrationLimits(), waits: Bool = false, logger: Logger
  ) async throws {
    store = try Store(configuration, name: Self.name, RegistrySchema.migration, logger: logger)
    purges = PurgeSchedule(tombstoneLifetime: tombstoneLifetime)
    self.limits = limits
    self.logger = logger
    do { try await store.migrate() } catch let error as PostgreSQLError where waits && error.code == .unavailable {
      logger.warning("Waiting for the database of the registry", metadata: [LogKeys.error: "\(error)"])
    }
  }

  /// Throws when the store cannot be read, or does not take changes. Writes nothing.
  package func check() async throws {
    do {
      _ = try await read { try $0.first(Self.readProbe) { try $0.text(0) } }
      try await store.check()
    } catch { throw Self.registryError(error) }
  }

  /// Closes the store; every later call throws. Releasing the last reference also closes it.
  package func close() { store.close() }

  /// Whether there is one writer, for which large transactions of others would wait.
  var hasOneWriter: Bool { store.hasOneWriter }

  /// Runs a block that only reads.
  func read<Value: Sendable>(_ body: @escaping @Sendable (Session) throws -> Value) async throws -> Value {
    do { return try await store.read(body) } catch { throw Self.registryError(error) }
  }

  /// Runs a block as one transaction, durable when this returns. With `now` given some expired rows are purged once a
  /// minute: in the transaction where there is one writer, else in another one after it.
  func write<Value: Sendable>(
    at now: UnixTime? = nil, _ body: @escaping @Sendable (Session) throws -> Value
  ) async throws -> Value {
    guard let now, store.hasOneWriter else {
      let value: Value
      do { value = try await store.write(body) } catch { throw Self.registryError(error) }
      if let now { await purgeIfDue(at: now) }
      return value
    }
    do {
      return try await store.write { [purges] session in
        let value = try body(session)
        if purges.begin(at: now) { purges.finish(removed: try Purge.run(session, purges, at: now)) }
        return value
      }
    } catch { throw Self.registryError(error) }
  }

  private static let name = "the registry"
  private static let readProbe = PreparedStatement("SELECT hub FROM registrations LIMIT 1")

  private func purgeIfDue(at now: UnixTime) async {
    guard purges.begin(at: now) else { return }
    do {
      purges.finish(removed: try await store.write { [purges] in try Purge.run($0, purges, at: now) })
    } catch {
      // It only frees space: the next purge will.
      logger.debug("Expired rows could not be removed", metadata: [LogKeys.error: "\(error)"])
    }
  }

  private static func registryError(_ error: any Error) -> any Error {
    switch error {
    case let error as RegistryError: error
    case let error as TooManyReads where error.hasCaller: error
    case let error as StoreError where error == .mismatch: StoredRegistration.damaged
    case let error as StoreError where [.busy, .displaced, .full].contains(error.code):
      RegistryError(.unavailable, error.message)
    default:
      RegistryError(
        .unavailable, "the registry is unavailable: \(Store.reason(of: error))",
        isOutcomeUnknown: Store.isOutcomeUnknown(error))
    }
  }
}

/// The file of a registry and how to open it.
package struct SQLiteRegistryConfiguration: Sendable {
  /// The file and its connections. The default page cache of a reader holds the inner pages for some million tags, or
  /// all pages for the look-ups of 100,000 users: reading a page that is not cached costs a system call and a copy of 4
  /// KiB, which is more than the search itself. Look-ups use one connection at a time, so usually only one cache fills.
  /// A larger cache of the writer did not speed up imports: their changes are spread over the whole file.
  var file: SQLiteConfiguration
  /// How long tombstones are kept.
  package var tombstoneLifetime: Duration = .seconds(30 * 86_400)
  /// The limits of the registrations.
  package var limits = RegistrationLimits()

  package init(path: String) { file = SQLiteConfiguration(path: path, label: "fanfare.registry") }

  /// The database file, created if missing.
  package var path: String { file.path }

  /// The longest wait of an operation for another process, and for its turn in this process.
  package var busyTimeout: Duration {
    get { file.busyTimeout }
    set { file.busyTimeout = newValue }
  }

  /// The number of reader connections, at least 1.
  package var readerCount: Int {
    get { file.readerCount }
    set { file.readerCount = newValue }
  }
}

/// The registry's file can never be used: it needs another file, other permissions or another release.
///
/// An error of the process, where `RegistryError` is one of a single request. The message names the file and contains
/// no stored values.
package struct RegistryFileError: Error, Hashable, Sendable, CustomStringConvertible {
  package let message: String

  init(_ message: String) {
    self.message = message
  }

  package var description: String { message }
}

extension Logger {
  /// Writes nothing.
  package static var silent: Self { Self(label: "fanfare.registry") { _ in SwiftLogNoOpLogHandler() } }
}
