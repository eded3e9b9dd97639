import Glibc
import NIOCore
import ServiceLifecycle

/// A service that listens where the settings say. Where this machine has no such address, or does not let it have the
/// port, the error names the key.
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
    } catch let error as IOError {
      guard let refusal = Self.refusal(of: section, code: error.errnoCode) else { throw error }
      throw refusal
    }
  }

  /// What the kernel's error `code` says of a section's port; nil where it says nothing of it.
  static func refusal(of section: String, code: Int32) -> SettingsError? {
    // It listens on four ports, and the kernel does not say on which one it could not.
    let key = section == "simulator" ? "simulator.apnsPort, fcmPort, httpsPort or adminPort" : "\(section).port"
    return switch code {
    case EACCES: SettingsError(key, "cannot be listened on: permission denied")
    case EADDRINUSE: SettingsError(key, "is taken by another process")
    default: nil
    }
  }
}
