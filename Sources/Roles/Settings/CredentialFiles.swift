import AzureHub
import FanfareCore
import Foundation
import FrontEnd
import PushServices
import SettingsTable
import Store

/// The files of a hub's credentials, whose ids a client of Azure may read, and which it may replace if
/// `hub.NAME.azure.updatesCredentials` is set.
///
/// It writes to the paths of the configuration alone, each file at once: a reader sees the old or the new one. Workers
/// read them again when they change; see `CredentialWatch`.
actor CredentialFiles: HubCredentialStore {
  private let hub: HubSettings
  private let runtime: Runtime

  init(of hub: HubSettings, _ runtime: Runtime) { (self.hub, self.runtime) = (hub, runtime) }

  func replace(_ credentials: [HubCredential]) async throws -> [Platform] {
    guard hub.simulator == nil else {
      throw Refusal(.conflict, "The hub pushes to a simulator and has no credentials of its own.")
    }
    let files = try credentials.map { try changes($0) }
    try write(files.flatMap { $0 })
    return zip(credentials, files).filter { !$1.isEmpty }.map(\.0.platform)
  }

  func identities() async -> [HubCredential] {
    guard hub.simulator == nil else { return [] }
    return hub.services.compactMap { service in
      let platform = type(of: service).platform
      guard let values = service.identity, let name = platform.vocabulary.azure.lazy.compactMap(\.credential).first
      else { return nil }
      return HubCredential(platform, name: name, values)
    }
  }

  private func changes(_ credential: HubCredential) throws -> [CredentialUpdate.File] {
    let update = CredentialUpdate(
      of: hub.name, on: credential.platform, name: credential.name, credential.values, runtime.senderResources)
    do {
      guard let service = hub.services.first(where: { type(of: $0).platform == credential.platform }) else {
        throw update.unsupported
      }
      return try service.files(replacedBy: update)
    } catch let refusal as CredentialUpdate.Refusal {
      throw Refusal(refusal.isConflict ? .conflict : .invalidField, refusal.detail)
    }
  }

  /// Writes all files, or none: when one cannot be replaced, those before get their former contents again.
  private func write(_ changes: [CredentialUpdate.File]) throws(Refusal) {
    var former: [(path: String, data: Data)] = []
    do {
      for change in changes {
        let data = try Data(contentsOf: URL(fileURLWithPath: change.path))
        try Self.write(Data((change.text.trimmingSuffix { $0.isNewline } + "\n").utf8), to: change.path)
        former.append((change.path, data))
      }
    } catch {
      // The error that is reported is the first one.
      for file in former.reversed() { try? Self.write(file.data, to: file.path) }
      throw Refusal(.conflict, "The files of the credentials cannot be written; nothing was changed.")
    }
  }

  private static func write(_ data: Data, to path: String) throws {
    let temporary = "\(path).\(UUID().uuidString)"
    guard FileManager.default.createFile(atPath: temporary, contents: nil, attributes: [.posixPermissions: 0o600]),
      let file = FileHandle(forWritingAtPath: temporary)
    else { throw CocoaError(.fileWriteUnknown) }
    do {
      try file.write(contentsOf: data)
      try file.synchronize()
      try file.close()
      guard LocalFile.move(temporary, to: path) else { throw CocoaError(.fileWriteUnknown) }
    } catch {
      // The error that is reported is the first one.
      try? FileManager.default.removeItem(atPath: temporary)
      throw error
    }
  }
}
