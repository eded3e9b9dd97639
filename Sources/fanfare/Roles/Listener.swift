import Glibc
import NIOCore
import ServiceLifecycle

/// A service that listens where the settings say. Where this machine has no such address, the error names the key.
struct Listener: Service {
  /// What the key `host` is under.
  let section: String
  let service: any Service

  func run() async throws {
    do {
      try await service.run()
    } catch let error as SocketAddressError.UnknownHost {
      throw SettingsError("\(section).host", "must be an address or a name of this machine: \(error.errorDescription)")
    } catch let error as IOError where error.errnoCode == EADDRNOTAVAIL {
      throw SettingsError("\(section).host", "must be an address or a name of this machine: \(error)")
    }
  }
}
