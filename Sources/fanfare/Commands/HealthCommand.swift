import ArgumentParser
import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Roles

/// `fanfare health`
struct HealthCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "health",
    abstract: "Asks a role on this machine for its health; for the health checks of containers and scripts.",
    discussion: """
      Requests /readyz of the role's operations listener at operations.host and operations.port, or with port 0 at the \
      address in operations.announceFile, and prints the answer. Run it with the role's configuration and environment.

      Status 0 if the role can work now, 1 if it cannot or does not answer, 78 if the configuration cannot be used.
      """)

  /// The most bytes of an answer.
  private static let maximumAnswer = 1 << 20

  @OptionGroup var common: CommonOptions

  @Flag(help: "Request /healthz: only whether the role needs a restart.")
  var live = false

  @Option(help: ArgumentHelp("How long to wait for the answer.", valueName: "seconds"))
  var timeout = 5

  func validate() throws {
    guard (1...300).contains(timeout) else { throw ValidationError("--timeout must be 1 to 300 seconds") }
  }

  func run() async throws {
    let address = try common.settings().operations.probedAddress()
    let client = HTTPClient(eventLoopGroupProvider: .singleton)
    let answer: (status: UInt, text: String)
    do {
      let request = HTTPClientRequest(url: "http://\(address)/\(live ? "healthz" : "readyz")")
      let response = try await client.execute(request, timeout: .seconds(Int64(timeout)))
      answer = (response.status.code, String(buffer: try await response.body.collect(upTo: Self.maximumAnswer)))
    } catch {
      try await client.shutdown()
      Console.error("fanfare: no role answered at \(address) (operations.port) within \(timeout) s")
      throw ExitCode.failure
    }
    try await client.shutdown()
    Console.print(answer.text)
    guard answer.status == 200 else { throw ExitCode.failure }
  }
}
