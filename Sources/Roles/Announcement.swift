import FoundationEssentials
package import Logging
import ServiceLifecycle

/// Tells where a role listens, once it does: on standard output as a line `name address`, in the log, and in a file
/// where scripts wait for one. Lives as long as the role.
package struct Announcement: Service {
  /// What listens.
  let name: String
  /// Where the address is written, whole or not at all; nil where nobody waits for a file. Comes from the key
  /// `announceFile` under the name.
  let file: String?
  let logger: Logger
  /// Suspends until the role listens.
  let address: @Sendable () async throws -> String

  package init(
    name: String, file: String?, logger: Logger, address: @escaping @Sendable () async throws -> String
  ) {
    (self.name, self.file, self.logger, self.address) = (name, file, logger, address)
  }

  /// A listener's address as URLs write it.
  package static func address(host: String, port: Int) -> String {
    host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }

  package func run() async throws {
    let address: String
    do { address = try await self.address() } catch let error as SettingsError { throw error } catch {
      // It has ended without listening, and says itself why: its error, not this one, is to end the process.
      return try await gracefulShutdown()
    }
    if let file {
      do { try Data("\(address)\n".utf8).write(to: URL(fileURLWithPath: file), options: .atomic) } catch {
        throw SettingsError("\(name).announceFile", "names a file that cannot be written: \(file)")
      }
    }
    Console.print("\(name) \(address)")
    logger.notice("Listening", metadata: [LogKeys.listener: "\(name)", LogKeys.address: "\(address)"])
    try await gracefulShutdown()
  }
}
