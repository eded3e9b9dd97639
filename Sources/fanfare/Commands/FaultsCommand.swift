import ArgumentParser
import FoundationEssentials

/// `fanfare faults`
struct FaultsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "faults",
    abstract: "Injures deployments of its own while a load runs, audits them, and prints a table.",
    discussion: """
      Each row is a deployment of its own in processes of its own: an embedded Kafka, a simulator, a ledger, two front ends and three \
      workers, and a fault. When it is over and everything is quiet, fanfare audit and the ledger say what became of every send. Status 0 \
      only if nothing was lost and nothing counted wrong in any row.
      """)

  @Option(
    name: .customLong("row"), parsing: .upToNextOption, help: "The rows to run, by the beginnings of their names; default all.")
  var rows: [String] = []

  @Flag(help: "Only the rows that are quick, each made short.")
  var quick = false

  @Option(
    help: ArgumentHelp(
      "How many devices the row with a broadcast has, 1000 to 1000000; a million take some minutes.", valueName: "count"))
  var devices = 20_000

  @Option(help: ArgumentHelp("How long APNs is dead in the row of that, 60 to 3600.", valueName: "seconds"))
  var outage = 60

  @Flag(help: "Print one JSON object instead of the table.")
  var json = false

  private var everyScenario: [FaultScenario] { FaultScenario.all(devices: devices, outage: .seconds(outage)) }

  /// The rows asked for.
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
  }

  func run() async throws {
    var results: [FaultRow] = []
    if !json { Console.print(FaultRow.tableHead) }
    for scenario in scenarios {
      guard !scenario.needsSmallDisk || SmallDisk.isPermitted else {
        Console.error("Left out, for only root can make a small file system: \(scenario.name)")
        continue
      }
      let row = try await FaultRun.run(scenario, isQuick: quick)
      results.append(row)
      if !json { Console.print(row.tableRow) }
    }
    if json { Console.print(String(decoding: try JSONEncoder().encode(["rows": results]), as: UTF8.self)) }
    guard results.allSatisfy(\.isGood) else { throw ExitCode.failure }
  }
}
