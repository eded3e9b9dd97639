import FanfareCore
package import Ledger
import Operations
package import RDKafka
import ServiceLifecycle

/// The ledger as a role.
package enum LedgerRole {
  package static func services(_ runtime: Runtime) async throws -> RoleServices {
    let settings = runtime.settings
    let check = try await DurabilityCheck.start(
      settings.kafka, role: "ledger", topics: [settings.kafka.topics.sends, settings.kafka.topics.status],
      logger: runtime.logger)
    var (role, _) = try services(runtime, client: try settings.kafka.client("ledger"))
    if let check { role.services.insert(check, at: 0) }
    role.services += settings.kafka.credentialWatches(logger: runtime.logger)
    role.addOperations(runtime)
    try role.addPulse("ledger", runtime, client: try settings.kafka.client("pulse"))
    return role
  }

  /// Creates the ledger without an operations server, and returns the store it writes.
  package static func services(_ runtime: Runtime, client: KafkaClientConfiguration) throws -> (
    RoleServices, any LedgerStore
  ) {
    let settings = runtime.settings
    let store = try settings.ledger.open(clock: runtime.clock, logger: runtime.logger)
    let ledger = try PatientLedger(
      configuration: LedgerConfiguration(client: client, topics: settings.kafka.topics), store: store,
      clock: runtime.clock,
      logger: runtime.logger, spans: runtime.tracing?.sink)
    // An idle ledger does not notice by itself that its store is unavailable.
    let check = NamedCheck("ledger") {
      if let problem = ledger.readinessProblem { return problem }
      return await RoleServices.problem(of: settings) { try await store.check() }
    }
    let kafka = NamedCheck("kafka") { await RoleServices.problem(of: settings) { try await ledger.checkKafka() } }
    let space = settings.ledger.spaceService(logger: runtime.logger)
    return (RoleServices(services: [space, ledger], checks: [check, kafka]), store)
  }
}
