import ArgumentParser
import FoundationEssentials
import Roles

/// `fanfare-dev bench`
struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measures the product against the machine's ceiling, and prints a table.",
    discussion: """
      Starts a broker, a worker or a front end, and a sink as child processes. The sink is nghttpd and the ceiling \
      h2load, nghttp2's server and load generator (Debian: nghttp2-server, nghttp2-client); nghttpd runs with \
      libPushSink.so (swift build -c release --product PushSink) from the directory of this program. Without them the \
      sink is `fanfare-dev simulator`, and without h2load there is no ceiling. accept has nginx for a ceiling, if it is \
      installed (Debian: nginx-light, which also starts a web server on port 80). look-up, ledger and import need \
      PostgreSQL's server (Debian: postgresql) instead of a sink. Ceiling and product alternate, and ratios are \
      medians of the pairs. The sink counts every push; a mismatch is an error. A debug build measures nothing useful.
      """)

  @Option(
    name: .customLong("scenario"), parsing: .upToNextOption,
    help:
      """
      What to measure: engine, single, tag, mixed, latency, accept, far-away, backlog, broadcast, lanes, workers, \
      broadcast-template, broadcast-postgresql, look-up, ledger, import; default all.
      """)
  var scenarios: [BenchOptions.Scenario] = []

  @Option(help: ArgumentHelp("Pairs of measurements of ceiling and product, 1 to 100.", valueName: "count"))
  var pairs = 3

  @Option(parsing: .upToNextOption, help: "The numbers of connections to the sink, 1 to 16 each.")
  var connections: [Int] = [1, 2]

  @Flag(help: "Small numbers and one pair: checks correctness in seconds, and says nothing about speed.")
  var quick = false

  @Flag(help: "Print one JSON object instead of the table.")
  var json = false

  @Option(
    help: ArgumentHelp(
      "A cluster to use instead of an embedded one. The command creates topics there and deletes them.",
      valueName: "host:port"))
  var kafka: String?

  @Option(
    help: ArgumentHelp(
      "A PostgreSQL server to use instead of a private one. The command creates schemas there and drops them.",
      valueName: "connection string"))
  var postgres: String?

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "The numbers of registrations for look-up, 1000 to 100000000 each; ten million take about 15 GB of disk.",
      valueName: "count"))
  var registrations: [Int] = [100_000, 10_000_000]

  @Option(
    help: ArgumentHelp(
      "A sink to use instead of nghttpd; it must speak APNs' protocol over TLS.", valueName: "host:port"))
  var sink: String?

  @Option(
    help: ArgumentHelp("The certificates (PEM) to trust for the sink, instead of the system's.", valueName: "file"))
  var sinkRoots: String?

  func validate() throws {
    guard (1...100).contains(pairs) else { throw ValidationError("--pairs must be 1 to 100") }
    guard !connections.isEmpty, connections.allSatisfy({ (1...16).contains($0) }) else {
      throw ValidationError("--connections must be 1 to 16 each")
    }
    guard !registrations.isEmpty, registrations.allSatisfy({ (1000...100_000_000).contains($0) }) else {
      throw ValidationError("--registrations must be 1000 to 100000000 each")
    }
    if let sink, Self.address(sink) == nil { throw ValidationError("--sink must be host:port") }
  }

  func run() async throws {
    var options = BenchOptions(
      scenarios: scenarios.isEmpty ? BenchOptions.Scenario.allCases : scenarios, pairs: quick ? 1 : pairs,
      connections: quick ? [connections[0]] : connections, isQuick: quick, kafka: kafka)
    (options.registrations, options.postgres) = (registrations, postgres)
    if let sink, let (host, port) = Self.address(sink) { options.sink = (host, port, sinkRoots) }
    let (wanted, json) = (options, json)
    try await endingWithSignals { try await Self.run(wanted, json: json) }
  }

  private static func run(_ options: BenchOptions, json: Bool) async throws {
    var reports: [ScenarioReport] = []
    if !json { Console.print(ScenarioReport.tableHead) }
    var failure: (any Error)?
    do {
      try await BenchRun.run(options) { report in
        reports.append(report)
        if !json { Console.print(report.tableRow) }
      }
    } catch { failure = error }
    // Printed even after a failure: the results of the other scenarios are valid.
    if json { Console.print(String(decoding: try JSONEncoder().encode(["scenarios": reports]), as: UTF8.self)) }
    if let failure { throw failure }
  }

  private static func address(_ text: String) -> (host: String, port: Int)? {
    guard let colon = text.lastIndex(of: ":"), colon > text.startIndex,
      let port = Int(text[text.index(after: colon)...]),
      (1...65535).contains(port)
    else { return nil }
    return (String(text[..<colon]), port)
  }
}
