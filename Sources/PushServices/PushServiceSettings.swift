package import FanfareCore
package import Logging
package import NIOCore
import NIOPosix
package import SettingsTable

/// One push service as a hub configures it: its keys, and the senders that are made with them.
///
/// There is one type for each platform. Its keys are those of the section `hub.NAME.<platform>`.
package protocol PushServiceSettings: Sendable {
  static var platform: Platform { get }
  /// The declarations of the keys.
  static var declaration: SettingsDeclaration { get }

  /// Reads the keys. Without the one that names the credential there are no credentials.
  init(hub: HubName, from reader: SettingsReader) throws(SettingsError)

  /// The files that hold the hub's credentials; empty if there are none.
  var files: [String] { get }
  /// The most pushes of all workers in any 60 seconds; nil: no limit.
  var pushesPerMinute: Int? { get }
  /// The most connections, also to a simulator; nil if no key limits them.
  var maximumConnections: Int? { get }

  /// Makes a sender with the hub's credentials. Throws `PushConfigurationError`.
  func sender(_ resources: SenderResources) throws -> RenewableSender

  /// The public properties of the credential, by the names of Azure's clients in lower case: ids and names. Nil if there
  /// is no credential, or if it has none or cannot be read.
  var identity: [String: String]? { get }
  /// The files of the credential that the update changes. Throws `CredentialUpdate.Refusal`.
  func files(replacedBy update: CredentialUpdate) throws -> [CredentialUpdate.File]

  /// The key, below the section's, that gives a field of the sender's configuration.
  func key(of field: String) -> String
}

extension PushServiceSettings {
  package var hasCredentials: Bool { !files.isEmpty }
  package var pushesPerMinute: Int? { nil }
  package var maximumConnections: Int? { nil }
  package var identity: [String: String]? { nil }

  package func files(replacedBy update: CredentialUpdate) throws -> [CredentialUpdate.File] {
    throw update.unsupported
  }

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

/// What all senders are made with, besides their configurations.
package struct SenderResources: Sendable {
  package let clock: any WallClock
  package let eventLoopGroup: any EventLoopGroup
  /// The time between two looks at a sender's credential and gauges.
  package let checkInterval: Duration
  package let logger: Logger

  package init(
    clock: any WallClock = SystemWallClock(),
    eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
    checkInterval: Duration = .seconds(5), logger: Logger
  ) {
    (self.clock, self.eventLoopGroup, self.checkInterval, self.logger) = (clock, eventLoopGroup, checkInterval, logger)
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

/// A platform whose push service the program can use: its vocabulary, with the settings of the service.
package protocol ServedPlatform: PlatformVocabulary {
  associatedtype Settings: PushServiceSettings
}

/// The push services of the platforms.
package enum PushServiceList {
  /// The services in the order of the platforms.
  package static let all: [any PushServiceSettings.Type] = Platform.allCases.map { platform in
    guard let served = platform.vocabulary as? any ServedPlatform.Type else {
      preconditionFailure("\(platform) has no push service")
    }
    return served.service
  }

  /// The groups of keys of which a hub needs one: `hub.NAME.apns.*`.
  package static var sections: [String] { all.map { "hub.NAME.\($0.platform).*" } }
}

extension ServedPlatform {
  fileprivate static var service: any PushServiceSettings.Type { Settings.self }
}
