import ArgumentParser
import FoundationEssentials
import Roles

/// `fanfare-dev faults`
struct FaultsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "faults",
    abstract: "Injects faults into deployments under load, audits them, and prints a table.",
    discussion: """
      Each row is a fault in a deployment of its own: an embedded Kafka in this process, and a simulator, a ledger, \
      two front ends and three workers as child processes. After the fault, when everything has settled, `fanfare \
      audit` and the ledger account for every send. Rows that are impossible on the servers named with --kafka or \
      --postgres are left out and named. Status 0 only if rows were run, and in each of them nothing was lost, \
      miscounted or left in flight, and no push was repeated without a reason.
      """)

  @Option(
    name: .customLong("row"), parsing: .upToNextOption,
    help: "The rows to run, by the beginnings of their names; default: all.")
  var rows: [String] = []

  @Flag(help: "Only the quick rows, each shortened.")
  var quick = false

  @Option(
    help: ArgumentHelp(
      "Devices in the row with a broadcast, 1000 to 1000000; a million take some minutes.", valueName: "count"
    ))
  var devices = 20_000

  @Option(help: ArgumentHelp("The length of APNs' outage in its row, 60 to 3600.", valueName: "seconds"))
  var outage = 60

  @Option(
    help: ArgumentHelp(
      "A cluster to use instead of embedded ones; each row creates its own topics there and deletes them.",
      valueName: "host:port"))
  var kafka: String?

  @Option(
    help: ArgumentHelp(
      "A PostgreSQL server to use instead of SQLite files; each row creates its own schema there and drops it.",
      valueName: "connection string"))
  var postgres: String?

  @Flag(help: "Print one JSON object instead of the table.")
  var json = false

  private var everyScenario: [FaultScenario] { FaultScenario.all(devices: devices, outage: .seconds(outage)) }

  /// The selected rows.
  private var scenarios: [FaultScenario] {
    everyScenario.filter { scenario in
      (rows.isEmpty || rows.contains { scenario.name.hasPrefix($0) }) && (!quick || scenario.isQuick)
    }
  }

  func validate() throws {
    guard (1000...1_000_000).contains(devices) else { throw ValidationError("--devices must be 1000 to 1000000") }
    guard (60...3600).contains(outage) else { throw ValidationError("--outage must be 60 to 3600") }
    for row in rows where !everyScenario.contains(where: { $0.name.hasPrefix(row) }) {
      throw ValidationError("--row: there is no row that begins with “\(row)”")
    }
    guard !scenarios.isEmpty else { throw ValidationError("--quick: none of the rows given with --row is quick") }
  }

  func run() async throws {
    let (scenarios, servers) = (scenarios, FaultServers(kafka: kafka, postgres: postgres))
    let (isQuick, json) = (quick, json)
    try await endingWithSignals { try await Self.run(scenarios, on: servers, isQuick: isQuick, json: json) }
  }

  private static func run(
    _ scenarios: [FaultScenario], on servers: FaultServers, isQuick: Bool, json: Bool
  ) async throws {
    var results: [FaultRow] = []
    if !json { Console.print(FaultRow.tableHead) }
    var failure: BenchError?
    for scenario in scenarios {
      if let refusal = servers.refusal(of: scenario) {
        Console.error("Left out: \(scenario.name): \(refusal)")
        continue
      }
      do {
        let row = try await FaultRun.run(scenario, isQuick: isQuick, on: servers)
        results.append(row)
        if !json { Console.print(row.tableRow) }
      } catch {
        failure = BenchError("\(scenario.name): \(error)")
        break
      }
    }
    // Printed even after a failure: the results of the other rows are valid.
    if json { Console.print(String(decoding: try JSONEncoder().encode(["rows": results]), as: UTF8.self)) }
    if let failure { throw failure }
    guard !results.isEmpty else { throw BenchError("no row was run") }
    guard results.allSatisfy(\.isGood) else { throw ExitCode.failure }
  }
}
