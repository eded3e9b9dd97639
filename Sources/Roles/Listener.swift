import FoundationEssentials
import Glibc
package import Logging
import NIOCore
package import ServiceLifecycle
import SettingsTable

/// A service that listens on a configured address.
///
/// If the address or port is unavailable, the error names its key.
package struct Listener: Service, NamedService {
  /// The section of the key `host`.
  private let section: String
  var name: String { "listener of \(section)" }
  /// The keys of the ports, for errors.
  private let ports: String
  private let service: any Service

  /// `ports` names the port keys if there are several; the default is `section.port`.
  package init(section: String, ports: String? = nil, service: any Service) {
    (self.section, self.ports, self.service) = (section, ports ?? "\(section).port", service)
  }

  package func run() async throws {
    do {
      try await service.run()
    } catch let error as SocketAddressError.UnknownHost {
      throw SettingsError("\(section).host", "must be an address or a name of this machine: \(ErrorWords.text(error))")
    } catch let error as IOError where error.errnoCode == EADDRNOTAVAIL {
      throw SettingsError(
        "\(section).host", "must be an address or a name of this machine: \(ErrorWords.words(error.errnoCode))")
    } catch let error as IOError {
      guard let refusal = Self.refusal(of: ports, code: error.errnoCode) else { throw error }
      throw refusal
    }
  }

  /// The error about the port's key for the kernel's error `code`; nil if the code is not about it.
  static func refusal(of port: String, code: Int32) -> SettingsError? {
    switch code {
    case EACCES: SettingsError(port, "cannot be listened on: permission denied")
    case EADDRINUSE: SettingsError(port, "is taken by another process")
    default: nil
    }
  }
}

/// Announces a role's address once it listens. Runs as long as the role.
///
/// The address goes to standard output as `name address`, to the log, and to a file if one is configured.
package struct Announcement: Service {
  /// The name of the listener.
  let name: String
  /// The file that receives the address, written atomically; nil for none.
  ///
  /// The key is `announceFile` under `name`.
  let file: String?
  let logger: Logger
  /// Suspends until the role listens, and returns its address.
  let address: @Sendable () async throws -> String

  package init(
    name: String, file: String?, logger: Logger, address: @escaping @Sendable () async throws -> String
  ) {
    (self.name, self.file, self.logger, self.address) = (name, file, logger, address)
  }

  /// Formats a host and port as in a URL, with brackets around an IPv6 address.
  package static func address(host: String, port: Int) -> String {
    host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }

  package func run() async throws {
    let address: String
    do { address = try await self.address() } catch let error as SettingsError { throw error } catch {
      // The role ended before it listened. Its own error, not this one, must end the process.
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
