/// The costs of the product's work, as `fanfare-dev bench` has measured them, and the capacities that are assumed of
/// systems that it has not measured.
package struct Costs: Sendable {
  /// Processor time of a worker for a send to one device, from the record to the commit, in microseconds.
  package var single = 21.1
  /// Processor time of a worker for a push of a broadcast.
  package var broadcast = 4.84
  /// Processor time of a worker for a deferred push that comes back and is deferred again.
  package var deferral = 21.1
  /// Processor time of a front end for a send, over HTTP/2.
  package var accept = 8.75
  /// Processor time of the registry's database for one user in a look-up, with ten million registrations.
  package var lookUp = 8.8
  /// Processor time of the registry's database for one request, beside the cost of its users or devices.
  package var request = 30.0
  /// Processor time of the registry's database for one device of a page.
  package var pageDevice = 1.5
  /// How long a row that is changed stays locked: until its transaction is on the disk.
  package var transaction = 1_000.0
  /// Processor time of a ledger process, and of its database, for a send.
  package var ledger = 9.93
  package var ledgerDatabase = 18.8
  /// Processor time of a broker for a batch that is produced, with its replication and delivery.
  package var batch = 100.0
  /// Processor time of a broker for a kilobyte that is produced, replicated and delivered.
  package var kilobyte = 3.0

  /// The sources of the figures: the command that has measured one, or the reason to assume it.
  package struct Source: Sendable {
    package let name: String
    package let cost: @Sendable (Costs) -> Double
    package let origin: String
  }

  package static let sources: [Source] = [
    Source(name: "worker, single send", cost: \.single, origin: "bench --scenario single (2 connections)"),
    Source(name: "worker, push of a broadcast", cost: \.broadcast, origin: "bench --scenario broadcast-postgresql"),
    Source(name: "worker, push that is deferred again", cost: \.deferral, origin: "assumed: as a single send"),
    Source(name: "front end, send", cost: \.accept, origin: "bench --scenario accept (HTTP/2)"),
    Source(name: "registry's database, user", cost: \.lookUp, origin: "pgbench beside bench --scenario look-up"),
    Source(name: "registry's database, request", cost: \.request, origin: "assumed"),
    Source(name: "registry's database, device of a page", cost: \.pageDevice, origin: "assumed"),
    Source(name: "database, row locked by a transaction", cost: \.transaction, origin: "assumed: a disk's 1 ms"),
    Source(name: "ledger, send", cost: \.ledger, origin: "bench --scenario ledger (2 sharing)"),
    Source(
      name: "ledger's database, send", cost: \.ledgerDatabase,
      origin: "bench --scenario ledger: both cores, less the ledgers"),
    Source(name: "broker, produced batch", cost: \.batch, origin: "assumed"),
    Source(name: "broker, kilobyte", cost: \.kilobyte, origin: "assumed"),
  ]

  package init() {}
}
