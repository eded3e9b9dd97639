import Glibc
import NIOCore
package import ServiceLifecycle

/// A service that listens where the settings say. Where this machine has no such address, or does not let it have the
/// port, the error names the key.
package struct Listener: Service {
  /// What the key `host` is under.
  private let section: String
  /// The keys of the ports.
  private let ports: String
  private let service: any Service

  /// `ports` names the keys where there is not just one, `section.port`.
  package init(section: String, ports: String? = nil, service: any Service) {
    (self.section, self.ports, self.service) = (section, ports ?? "\(section).port", service)
  }

  package func run() async throws {
    do {
      try await service.run()
    } catch let error as SocketAddressError.UnknownHost {
      throw SettingsError("\(section).host", "must be an address or a name of this machine: \(error.errorDescription)")
    } catch let error as IOError where error.errnoCode == EADDRNOTAVAIL {
      throw SettingsError("\(section).host", "must be an address or a name of this machine: \(error)")
    } catch let error as IOError {
      guard let refusal = Self.refusal(of: ports, code: error.errnoCode) else { throw error }
      throw refusal
    }
  }

  /// What the kernel's error `code` says of the port under a key; nil where it says nothing of it.
  static func refusal(of port: String, code: Int32) -> SettingsError? {
    switch code {
    case EACCES: SettingsError(port, "cannot be listened on: permission denied")
    case EADDRINUSE: SettingsError(port, "is taken by another process")
    default: nil
    }
  }
}
