package import FanfareCore
package import FrontEnd
import Logging
package import Operations
package import ServiceLifecycle
import SettingsTable

/// A hub of the front end with everything that authenticating its callers needs.
package struct HubCallers: Sendable {
  package let hub: FrontEndHub
  /// Run while the front end runs.
  package let services: [any Service]
  package let checks: [any ReadinessCheck]

  package init(hub: FrontEndHub, services: [any Service] = [], checks: [any ReadinessCheck] = []) {
    (self.hub, self.services, self.checks) = (hub, services, checks)
  }
}

extension HubSettings {
  /// Creates the authenticators of the hub's callers, for a front end bound to the given address.
  ///
  /// `keys` holds the API keys. Throws an error that names the configuration key.
  package func callers(
    boundTo host: String, keys: any APIKeyStore, hashing: HashingThreads, runtime: Runtime
  ) async throws -> HubCallers {
    var logger = runtime.logger
    logger[metadataKey: LogKeys.hub] = "\(name)"
    var authenticators = try authenticators(
      boundTo: host, authentication: runtime.settings.authentication, hashing: hashing, logger: runtime.logger)
    var (services, checks): ([any Service], [any ReadinessCheck]) = ([], [])
    authenticators.append(APIKeyAuthenticator(hub: name, store: keys, clock: runtime.clock, logger: logger))
    if let tokens, let keys = try await tokenKeys(clock: runtime.clock, logger: logger) {
      authenticators.append(
        TokenAuthenticator(hub: name, rules: tokens.rules, policy: policy, keys: keys, clock: runtime.clock))
      services.append(UntilShutdown { try await keys.run() })
      checks.append(NamedCheck("token keys of \(name)", hubs: [name]) { keys.problem() })
    }
    if let certificateUser {
      authenticators.append(CertificateAuthenticator(hub: name, userFrom: certificateUser, policy: policy))
    }
    if let sharedAccess = try sharedAccess(runtime.settings.azure, clock: runtime.clock, logger: logger) {
      authenticators.append(sharedAccess)
    }
    return HubCallers(
      hub: FrontEndHub(name: name, authenticators: authenticators, quotas: quotas), services: services, checks: checks)
  }

  /// The keys of the hub's tokens; nil if it accepts none. Throws an error that names the key of an unusable file.
  func tokenKeys(clock: any WallClock, logger: Logger) async throws -> TokenKeys? {
    guard let tokens else { return nil }
    let keys = TokenKeys(tokens.keys, clock: clock, logger: logger)
    do throws(FrontEndError) { try await keys.check() } catch {
      throw SettingsError("hub.\(name).authentication.token.keysFile", "cannot be used: \(error)")
    }
    return keys
  }
}
