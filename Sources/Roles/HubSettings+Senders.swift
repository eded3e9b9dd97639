package import FanfareCore
package import FrontEnd
package import Logging
package import PushServices
import SettingsTable

extension HubSettings {
  /// Creates the hub's senders, one per platform with credentials. Throws an error that names the key.
  package func senders(_ runtime: Runtime) throws -> [any PushSender] {
    var (apns, fcm, wns) = (apns?.configuration, fcm?.configuration, wns?.configuration)
    if let simulator {
      do {
        let simulated = try SimulatorDirectory(path: simulator).configurations(of: name)
        (apns, fcm, wns) = (simulated.apns, simulated.fcm, simulated.wns)
        apns?.maximumConnections = maximumConnections.apns
        fcm?.maximumConnections = maximumConnections.fcm
      } catch {
        throw SettingsError(
          "hub.\(name).simulator", "must be the directory of a running `fanfare-dev simulator`: \(error)")
      }
    }
    let keys = self.apns?.hasKeyIDFile == true ? Self.keys.merging(["keyID": "keyIDFile"]) { $1 } : Self.keys
    return try Self.senders(apns: apns, fcm: fcm, wns: wns, keys: keys, runtime: runtime)
  }

  /// Maps field names to configuration keys if they differ, as they do for values from files.
  package static let keys = [
    "privateKey": "keyFile", "secret": "secretFile", "trustRoots": "trustRootsFile", "connectTo.host": "connectHost",
    "connectTo.port": "connectPort",
  ]

  /// Creates a sender for each configuration that is not nil.
  ///
  /// Throws an error that names the configuration key; `keys` maps field names to keys.
  package static func senders(
    apns: APNsConfiguration?, fcm: FCMConfiguration?, wns: WNSConfiguration?, keys: [String: String] = Self.keys,
    runtime: Runtime
  ) throws -> [any PushSender] {
    var senders: [any PushSender] = []
    func make(_ key: String, _ hub: HubName, _ body: () throws -> any PushSender) throws {
      do { senders.append(try body()) } catch let error as PushConfigurationError {
        throw SettingsError("hub.\(hub).\(key).\(keys[error.field] ?? error.field)", error.problem)
      }
    }
    let (group, clock, logger) = (Runtime.pushEventLoopGroup, runtime.clock, runtime.logger)
    if let apns {
      try make("apns", apns.hub) {
        try APNsSender(configuration: apns, clock: clock, eventLoopGroup: group, logger: logger)
      }
    }
    if let fcm {
      try make("fcm", fcm.hub) {
        try FCMSender(configuration: fcm, clock: clock, eventLoopGroup: group, logger: logger)
      }
    }
    if let wns {
      try make("wns", wns.hub) {
        try WNSSender(configuration: wns, clock: clock, eventLoopGroup: group, logger: logger)
      }
    }
    return senders
  }

  /// Creates the authenticators of the hub's callers, for a front end bound to the given address.
  /// All hubs share the threads that hash passwords.
  package func authenticators(
    boundTo host: String, authentication: AuthenticationSettings, hashing: HashingThreads, logger: Logger
  ) throws -> [any Authenticator] {
    let prefix = "hub.\(name).authentication"
    do {
      let groups = try groupFile.map { try GroupDirectory(path: $0, logger: logger) }
      switch method {
      case .noPasswords: return []
      case .demo:
        return [try DemoAuthenticator(boundTo: host, allowRemote: allowRemote, policy: policy, groups: groups)]
      case .htpasswd:
        guard let passwordFile else {
          throw SettingsError("\(prefix).file", "is missing: an htpasswd file, unless \(prefix).method is demo or none")
        }
        return [
          try HtpasswdAuthenticator(
            path: passwordFile, policy: policy, groups: groups, hashing: hashing,
            configuration: authentication.passwords, logger: logger)
        ]
      }
    } catch let error as FrontEndError where error.code == .groupFile {
      throw SettingsError("\(prefix).groupFile", "cannot be used: \(error)")
    } catch let error as FrontEndError {
      throw SettingsError("\(prefix).\(method == .demo ? "method" : "file")", "cannot be used: \(error)")
    }
  }
}
