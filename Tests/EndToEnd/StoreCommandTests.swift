import FanfareCore
import Foundation
import Registry
import Support
import Testing

@testable import Roles
@testable import fanfare
@testable import fanfare_dev

/// `fanfare quotas show` and `fanfare registrations restore` as processes, over a SQLite registry.
@Suite(.timeLimit(.minutes(2))) struct StoreCommandTests {
  private func run(_ arguments: [String], in directory: URL) async throws -> (
    status: Int32, output: String, log: String
  ) {
    let process = try ChildProcess(
      arguments, name: "store", environment: ["FANFARE_REGISTRY_PATH": directory.appending(path: "registry").path],
      program: ChildProcess.product, directory: directory, keepsOutput: true)
    defer { process.destroy() }
    let status = try await process.exitStatus(within: .seconds(60))
    return (status, try process.output(), process.log)
  }

  @Test func useOfQuotasIsShown() async throws {
    try await withDirectory("quotas") { directory in
      let registry = try RegistryDatabase(
        SQLiteRegistryConfiguration(path: directory.appending(path: "registry").path))
      let rate = CallerRate(
        hub: .default, user: "backend", name: .devices, limit: RateLimit(perDay: 100_000_000, mayOverdraw: true))
      _ = try await registry.reserve(
        RateDemand(atLeast: 5_000_000, atMost: 5_000_000), of: rate, at: SystemWallClock().now())
      let (status, output, log) = try await run(["quotas", "show"], in: directory)
      #expect(status == 0, "\(log)")
      #expect(output.hasPrefix("default backend devices 4") || output.hasPrefix("default backend devices 5"))
      #expect(output.contains(" of 100000000\n"))
      let one = try await run(["quotas", "show", "--user", "backend", "--json"], in: directory)
      #expect(one.output.split(separator: "\n").count == QuotaName.allCases.count + 1)
      #expect(one.output.contains(#"{"hub":"default","limit":100,"quota":"openBroadcasts","used":0,"user":"backend"}"#))
      #expect(try await run(["quotas", "show", "--hub", "nowhere"], in: directory).status != 0)
    }
  }

  @Test func dropsOfAWrongServiceAreUndone() async throws {
    try await withDirectory("restore") { directory in
      var configuration = SQLiteRegistryConfiguration(path: directory.appending(path: "registry").path)
      configuration.limits.quarantine = .seconds(86_400)
      let registry = try RegistryDatabase(configuration)
      let now = SystemWallClock().now()
      let device = try await registry.install(
        DeviceRequest(installation: "i", hub: .default, user: "ann", platform: .fcm, handle: "h"), at: now)
      let verdict = DeadDevice(hub: .default, registration: device.id, handle: "h", since: nil, reason: "UNREGISTERED")
      #expect(try await registry.drop([verdict], at: now) == [device.id])
      let span = ["--from", "\(now + .seconds(-60))", "--to", "\(now + .seconds(60))"]
      for (options, words) in [
        (["--platform", "apns"], "0 registrations restored, 0"),
        (["--dry-run"], "1 registrations would be restored, 0"),
        ([], "1 registrations restored, 0"), ([], "0 registrations restored, 0"),
      ] {
        let (status, output, log) = try await run(["registrations", "restore"] + span + options, in: directory)
        #expect(status == 0 && output.hasPrefix(words), "\(output) \(log)")
      }
      #expect(try await registry.registration(device.id, hub: .default) == device)
    }
  }
}
