package import FanfareCore
package import Logging
package import NIOCore
package import SettingsTable

/// One push service as a hub configures it: its keys, and the senders that are made with them.
///
/// There is one type for each platform. Its keys are those of the section `hub.NAME.<platform>`.
package protocol PushServiceSettings: Sendable {
  static var platform: Platform { get }
  /// The declarations of the keys.
  static var declaration: SettingsDeclaration { get }
  /// A handle that no device has, in the platform's form.
  static var absentHandle: String { get }

  /// Reads the keys. Without the one that names the credential there are no credentials, and the other keys are those
  /// of a simulator.
  init(hub: HubName, from reader: SettingsReader) throws(SettingsError)

  /// The files that hold the hub's credentials; empty if there are none.
  var files: [String] { get }
  /// The most pushes of all workers in any 60 seconds; nil: no limit.
  var pushesPerMinute: Int? { get }

  /// Makes a sender with the hub's credentials. Throws `PushConfigurationError`.
  func sender(_ resources: SenderResources) throws -> RenewableSender
  /// Makes a sender that pushes to a simulator. Throws errors about the files in its directory, too.
  func sender(to simulator: SimulatorDirectory, _ resources: SenderResources) throws -> RenewableSender

  /// The key, below the section's, that gives a field of the sender's configuration.
  func key(of field: String) -> String
}

extension PushServiceSettings {
  package var hasCredentials: Bool { !files.isEmpty }
  package var pushesPerMinute: Int? { nil }

  package func key(of field: String) -> String {
    switch field {
    case "privateKey": "keyFile"
    case "secret": "secretFile"
    case "trustRoots": "trustRootsFile"
    case "connectTo.host": "connectHost"
    case "connectTo.port": "connectPort"
    default: field
    }
  }
}

/// What all senders are made with.
package struct SenderResources: Sendable {
  package let clock: any WallClock
  package let eventLoopGroup: any EventLoopGroup
  package let logger: Logger

  package init(clock: any WallClock, eventLoopGroup: any EventLoopGroup, logger: Logger) {
    (self.clock, self.eventLoopGroup, self.logger) = (clock, eventLoopGroup, logger)
  }
}

/// A sender, and how it gets a credential that was replaced.
package struct RenewableSender: Sendable {
  package let sender: any PushSender
  /// The files that hold the credential.
  package let files: [String]
  /// Reads the files and gives the sender their contents. Returns false if it has them already.
  package let renew: @Sendable () throws -> Bool

  package init(_ sender: any PushSender, files: [String], renew: @escaping @Sendable () throws -> Bool) {
    (self.sender, self.files, self.renew) = (sender, files, renew)
  }
}

/// The push services of this process. The list is fixed by its first use.
package enum PushServiceList {
  private static let declared = DeclaredList<any PushServiceSettings.Type>([
    APNsSettings.self, FCMSettings.self, WNSSettings.self,
  ])

  /// The list, in the order of the platforms.
  package static let all = declared.fixed

  /// Adds a push service and its platform. A program does so first of all, before anything uses the lists.
  package static func add(_ service: any PushServiceSettings.Type, _ vocabulary: any PlatformVocabulary.Type) {
    PlatformList.add(vocabulary)
    declared.add(service)
  }

  /// A handle that no device of the platform has.
  package static func absentHandle(of platform: Platform) -> String {
    all.first { $0.platform == platform }?.absentHandle ?? ""
  }

  /// The groups of keys of which a hub needs one: `hub.NAME.apns.*`.
  package static var sections: [String] { all.map { "hub.NAME.\($0.platform).*" } }
}
