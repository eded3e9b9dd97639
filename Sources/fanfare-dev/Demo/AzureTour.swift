import FanfareCore
import FoundationEssentials
import FrontEnd
import Ledger
import Operations
import PushSimulator
import Roles

/// Shows the Azure door: registrations and sends in the protocol of Azure Notification Hubs, exact in audit and ledger.
struct AzureTour: Sendable {
  /// A rule with a new key.
  struct Door: Sendable {
    private static let rule = "DefaultFullSharedAccessSignature"
    private static let file = "azure-rules"
    private let key = Data((RegistrationID.random().bytes + RegistrationID.random().bytes)).base64EncodedString()

    /// Writes the rule for `environment`.
    func writeRule(in directory: URL) throws {
      let file = directory.appending(path: Self.file)
      try Data("\(Self.rule) Listen,Send,Manage \(key)\n".utf8).write(to: file)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    }

    func environment(in directory: URL) -> [String: String] {
      [
        "FANFARE_AZURE_ENABLED": "true",
        "FANFARE_HUB_DEFAULT_AZURE_RULES_FILE": directory.appending(path: Self.file).path,
      ]
    }

    func client(of base: String) -> AzureClient { AzureClient(base: base, rule: Self.rule, key: key) }
  }

  /// The numbers of `fanfare audit` that are shown.
  private struct Audit: Codable {
    let accepted: Int
    let settled: Int
    let inFlight: Int
    let lost: Int
  }

  let load: AzureLoad
  let isOnce: Bool
  let door: Door
  let frontEnd: FrontEnd
  let simulator: PushSimulator
  let ledger: any LedgerStore
  /// The environment of commands.
  let environment: [String: String]
  let directory: URL
  let checks: [any ReadinessCheck]

  /// Runs the tour. Returns true if ledger, audit and devices have every push exactly once.
  func run() async throws -> Bool {
    Console.print(
      "Fanfare \(Build.version) in place of Azure Notification Hubs. Kafka is embedded, the push services are simulated."
    )
    let client = door.client(of: "http://127.0.0.1:\(try await frontEnd.boundPort())")
    try await Readiness(checks: checks).wait()
    Console.print(Demo.invitation(to: client.base))
    let start = ContinuousClock.now
    Console.print("Registering \(load.registrations) devices …")
    try await load.register(through: client)
    Console.print("Sending \(load.sends) times …")
    let ids = try await load.send(through: client)
    let ledger = ledger
    try await Tour.wait(for: load.sends) { try await ledger.totals(hub: .default).settled }
    let seconds = (ContinuousClock.now - start) / .seconds(1)

    var (pushes, wrong) = (0, 0)
    for (number, id) in ids.enumerated() {
      let expected = load.pushes(ofSend: number)
      pushes += expected
      guard let id = SendID(id) else { throw DemoError("a send has no id") }
      let report = try await ledger.report(of: id, hub: .default)
      if report?.state != (expected == 0 ? .noTarget : .settled) || report?.delivered != expected { wrong += 1 }
    }
    let arrived = simulator.store.counts()
    let audit = try await audit()
    Console.print(
      """
      {"registrations":\(load.registrations),"sends":\(load.sends),"pushes":\(pushes),"arrived":\(arrived.accepted),\
      "repeated":\(arrived.duplicates),"wrongInLedger":\(wrong),"audit":{"accepted":\(audit.accepted),\
      "settled":\(audit.settled),"inFlight":\(audit.inFlight),"lost":\(audit.lost)},\
      "seconds":\((seconds * 100).rounded() / 100)}
      """)
    let isExact =
      wrong == 0 && arrived.accepted == pushes && arrived.duplicates == 0 && audit.accepted == load.sends
      && audit.settled == load.sends && audit.inFlight == 0 && audit.lost == 0
    guard !isOnce else { return isExact }
    Console.print(
      """

      It stays up for you (control-C ends it). Clients of Azure Notification Hubs that accept http may use the hub \
      \(client.hub) with

        \(client.connectionString)

      """)
    for await _ in simulator.store.events() {}
    return isExact
  }

  /// Runs `fanfare audit`.
  private func audit() async throws -> Audit {
    let process = try ChildProcess(
      ["audit", "--json"], name: "audit", environment: environment, program: ChildProcess.product,
      directory: directory, keepsOutput: true)
    defer { process.destroy() }
    guard try await process.exitStatus(within: .seconds(120)) == 0 else {
      throw DemoError("fanfare audit has failed\n\(process.lastWords)")
    }
    return try JSONDecoder().decode(Audit.self, from: Data(try process.output().utf8))
  }
}

extension SendReport {
  /// The devices that the push services accepted a push for.
  fileprivate var delivered: Int { counts.values.reduce(0) { $0 + ($1[.delivered] ?? 0) } }
}
