import FanfareCore
package import FrontEnd
package import Logging
package import PushServices
import SettingsTable

extension HubSettings {
  /// Creates the hub's senders, one for each platform with credentials. Throws an error that names the key.
  package func senders(_ runtime: Runtime) throws -> [RenewableSender] {
    if let simulator { return try senders(toSimulator: simulator, runtime) }
    return try services.filter(\.hasCredentials).map { service in
      do { return try service.sender(runtime.senderResources) } catch let error as PushConfigurationError {
        throw SettingsError("hub.\(name).\(type(of: service).platform).\(service.key(of: error.field))", error.problem)
      }
    }
  }

  /// Creates senders of all platforms to the simulator with that directory.
  package func senders(toSimulator directory: String, _ runtime: Runtime) throws -> [RenewableSender] {
    do {
      let keys = try SettingsReader([simulatorKeys(directory)])
      return try services.map { try type(of: $0).init(hub: name, from: keys).sender(runtime.senderResources) }
    } catch {
      throw SettingsError(
        "hub.\(name).simulator", "must be the directory of a running `fanfare-dev simulator`: \(error)")
    }
  }

  /// The keys with which a hub pushes to a simulator, which writes them into its directory. The paths are relative.
  private func simulatorKeys(_ directory: String) throws(SettingsError) -> SettingsSource {
    let file = try SettingsFile(path: "\(directory)/hub.yaml", of: "hub.\(name).simulator")
    // Made-up keys need no protection.
    var values = ["secrets.allowReadable": SettingsValue(text: "true", whole: nil, number: nil, truth: true)]
    for (key, entry) in file.entries {
      let path = key.hasSuffix("File") ? entry.text.map { "\(directory)/\($0)" } : nil
      values["hub.\(name).\(key)"] =
        path.map { SettingsValue(text: $0, whole: nil, number: nil, truth: nil) } ?? entry.value
    }
    for service in services {
      let key = "hub.\(name).\(type(of: service).platform).maximumConnections"
      values[key] = service.maximumConnections.map { SettingsValue(text: "\($0)", whole: $0, number: nil, truth: nil) }
    }
    return SettingsSource(file: values)
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

extension Runtime {
  var senderResources: SenderResources {
    SenderResources(clock: clock, eventLoopGroup: Self.pushEventLoopGroup, logger: logger)
  }
}
