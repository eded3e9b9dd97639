import ArgumentParser

/// What is to be measured, and against what.
struct BenchOptions: Sendable {
  /// One measurement of the table.
  enum Scenario: String, CaseIterable, Sendable, ExpressibleByArgument {
    case engine, single, tag, mixed, latency, accept, farAway = "far-away", backlog, broadcast, lanes, workers
    case databaseBroadcast = "broadcast-postgresql"
    case lookUp = "look-up"
    case ledger
    case imports = "import"
  }

  var scenarios: [Scenario]
  /// How often ceiling and pipeline alternate.
  var pairs: Int
  /// The numbers of connections to the sink that are measured.
  var connections: [Int]
  /// Small numbers, for correctness alone.
  var isQuick: Bool
  /// A cluster to use instead of the embedded one.
  var kafka: String?
  /// A sink to use instead of one of our own: `host:port` and the file of the roots to trust.
  var sink: (host: String, port: Int, trustRoots: String?)?

  /// The numbers of registrations that devices are looked up among.
  var registrations: [Int] = []
  /// A PostgreSQL to use instead of one of our own: libpq's connection string.
  var postgres: String?

  /// A number, or a hundredth of it (but at least `floor`) where only correctness counts.
  func scaled(_ count: Int, floor: Int = 100) -> Int { isQuick ? max(floor, count / 100) : count }
}
