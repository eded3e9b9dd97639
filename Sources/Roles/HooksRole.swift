import FanfareCore
import Hooks
import Logging
import Operations
import ServiceLifecycle
import SettingsTable

/// The delivery of outcomes to hooks as a role.
package enum HooksRole {
  package static func services(_ runtime: Runtime) async throws -> RoleServices {
    let settings = runtime.settings
    guard !settings.hooks.isEmpty else {
      throw SettingsError("hub.\(settings.hubs[0].name).hooks", "must name a hook: there is no hook to deliver to")
    }
    let check = try await DurabilityCheck.start(
      settings.kafka, role: "hooks", topics: [settings.kafka.topics.status], logger: runtime.logger)
    var role = RoleServices(services: [], checks: [])
    if let check { role.services.append(check) }
    var deliveries: [any Service] = []
    var watches: [any Service] = []
    for hook in settings.hooks {
      let delivery = try delivery(to: hook, runtime)
      deliveries.append(delivery)
      role.checks.append(NamedCheck("hook \(hook.name)", hubs: hook.hubs) { delivery.problem })
      role.checks.append(
        NamedCheck("kafka of hook \(hook.name)", hubs: hook.hubs) {
          await RoleServices.problem { try await delivery.checkKafka() }
        })
      watches.append(
        CredentialWatch(
          metadata: [LogKeys.hook: "\(hook.name)"], files: hook.files, logger: runtime.logger,
          use: { delivery.use(try hook.secrets()) }))
    }
    role.services += [Together(services: deliveries)] + watches
    role.services += settings.kafka.credentialWatches(logger: runtime.logger)
    role.addOperations(runtime)
    try role.addPulse("hooks", runtime, client: try settings.kafka.client("pulse"))
    return role
  }

  private static func delivery(to settings: HookSettings, _ runtime: Runtime) throws -> HookDelivery {
    let (hook, kafka) = (try settings.hook(), runtime.settings.kafka)
    let consumer = hook.consumer(client: try kafka.client("hook-\(hook.name)"), topics: kafka.topics)
    do {
      return try HookDelivery(
        hook, secrets: try settings.secrets(), consumer: consumer, topics: kafka.topics, clock: runtime.clock,
        logger: runtime.logger)
    } catch is HookConfiguration.UnusableTrustRoots {
      throw SettingsError("hook.\(hook.name).trustRootsFile", "must name a file with certificates in PEM")
    }
  }
}
