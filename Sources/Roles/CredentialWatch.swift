import FanfareCore
import FoundationEssentials
import Logging
import PushServices
import ServiceLifecycle

/// Has a sender use another key as soon as the operator has put it where the one before lay: no restart, and nothing in
/// flight is given up.
///
/// The files are looked at once a second, and read by their content: what a key lies behind is often a symbolic link.
/// What cannot be used is logged, and the old key stays.
struct CredentialWatch: Service {
  let hub: HubName
  let platform: Platform
  /// What the credential is read from.
  let files: [String]
  let logger: Logger
  /// Reads them and hands the sender what they hold. False when it has that already.
  let use: @Sendable () throws -> Bool

  private static let interval = Duration.seconds(1)

  func run() async throws {
    await cancelWhenGracefulShutdown {
      // What was read at the start may have been replaced since: so the first look counts as news, which a sender does
      // not mind.
      var known: [Data] = []
      while true {
        // What cannot be read is just being replaced, or will be missed at the next start; the old key works on.
        if let found = try? files.map({ try Data(contentsOf: URL(fileURLWithPath: $0)) }), found != known {
          known = found
          renew()
        }
        do { try await Task.sleep(for: Self.interval) } catch { return }
      }
    }
  }

  private func renew() {
    do {
      guard try use() else { return }
      logger.notice(
        "A new credential is used", metadata: [LogKeys.hub: "\(hub)", LogKeys.platform: "\(platform.rawValue)"])
    } catch {
      logger.error(
        "The new credential cannot be used, and the old one stays",
        metadata: [LogKeys.hub: "\(hub)", LogKeys.platform: "\(platform.rawValue)", LogKeys.error: "\(error)"])
    }
  }
}

extension HubSettings {
  /// What looks after the files of the senders' credentials; see `senders(_:)`.
  func credentialWatches(of senders: [any PushSender], logger: Logger) -> [CredentialWatch] {
    senders.compactMap { sender in
      func watch(_ files: [String], _ use: @escaping @Sendable () throws -> Bool) -> CredentialWatch {
        CredentialWatch(hub: name, platform: sender.platform, files: files, logger: logger, use: use)
      }
      if let simulator {
        let directory = SimulatorDirectory(path: simulator)
        switch sender {
        case let sender as APNsSender:
          return watch(directory.apnsFiles) {
            let key = try directory.apnsKey()
            return try sender.use(privateKey: key.privateKey, keyID: key.id)
          }
        case let sender as FCMSender:
          return watch([directory.serviceAccountFile]) {
            try sender.use(try FCMSettings.account(at: directory.serviceAccountFile))
          }
        default: return nil
        }
      }
      switch sender {
      case let sender as APNsSender:
        return apns.map { settings in
          watch(settings.files) {
            let (key, id) = try settings.readKey()
            return try sender.use(privateKey: key, keyID: id)
          }
        }
      case let sender as FCMSender:
        return fcm.map { settings in
          watch([settings.file]) { try sender.use(try FCMSettings.account(at: settings.file)) }
        }
      case let sender as WNSSender:
        return wns.map { settings in
          watch([settings.file]) { try sender.use(secret: try WNSSettings.secret(at: settings.file)) }
        }
      default: return nil
      }
    }
  }
}
