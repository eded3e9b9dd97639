import FanfareCore
import FoundationEssentials
import Logging
import PushServices
import ServiceLifecycle
import SettingsTable

/// Gives a sender, a listener or the Kafka clients their new credential when the credential's files change.
///
/// No restart is needed, and requests in flight are not lost.
///
/// It reads the files once a second. It compares their contents, because a credential often lies behind a symbolic
/// link, and their permissions, because a secret that others may read is refused. If the new credential is unusable,
/// the watch logs the error and the old one stays in use.
struct CredentialWatch: Service {
  /// Names the credential in the log.
  let metadata: Logger.Metadata
  /// The files that hold the credential.
  let files: [String]
  let logger: Logger
  /// Reads the files and gives the user of the credential their contents. Returns false if it has them already.
  let use: @Sendable () throws -> Bool

  private static let interval = Duration.seconds(1)

  private struct Contents: Equatable {
    let data: Data
    let access: FileAccess?

    init(of path: String) throws {
      data = try Data(contentsOf: URL(fileURLWithPath: path))
      access = FileAccess(path: path)
    }
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      // The files may have changed since the start, so the first contents count as new. A credential that is
      // in use already is ignored.
      var known: [Contents] = []
      while true {
        // A file that cannot be read may be in the middle of a replacement; the old credential stays in use.
        if let found = try? files.map({ try Contents(of: $0) }), found != known {
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
      logger.notice("Credential replaced", metadata: metadata)
    } catch {
      logger.error(
        "New credential rejected; the old one stays in use",
        metadata: metadata.merging([LogKeys.error: "\(error)"]) { $1 })
    }
  }
}

extension HubSettings {
  /// The watches over the credential files of the hub's senders.
  func credentialWatches(of senders: [RenewableSender], logger: Logger) -> [CredentialWatch] {
    senders.map { renewable in
      CredentialWatch(
        metadata: [LogKeys.hub: "\(name)", LogKeys.platform: "\(renewable.sender.platform)"], files: renewable.files,
        logger: logger, use: renewable.renew)
    }
  }
}
