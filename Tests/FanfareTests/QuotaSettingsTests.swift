import FanfareCore
import Support
import Testing

@testable import Roles
@testable import fanfare

@Suite struct QuotaSettingsTests {
  private func policy(_ values: [String: String] = [:]) async throws -> QuotaPolicy {
    var environment = ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9092"]
    for (key, value) in values { environment["FANFARE_HUB_DEFAULT_QUOTA_\(key)"] = value }
    return try #require(try Settings.load(file: nil, environment: environment).hubs.first).quotas
  }

  @Test func quotasAreOnByDefault() async throws {
    let limits = try await policy().limits(of: "anybody")
    #expect(limits == QuotaLimits())
    #expect(QuotaName.allCases.allSatisfy { limits.rate($0) != nil || limits.most($0) > 0 })
    #expect(QuotaName.allCases.allSatisfy { QuotaLimits.none.rate($0) == nil && QuotaLimits.none.most($0) == 0 })
  }

  @Test func rateWithoutABurstAllowsOneSecondAtOnce() async throws {
    #expect(try await policy(["SENDS_PER_SECOND": "5"]).everyone.rate(.sends) == RateLimit(perSecond: 5, burst: 5))
    let both = try await policy(["SENDS_PER_SECOND": "5", "BURST": "50"])
    #expect(both.everyone.rate(.sends) == RateLimit(perSecond: 5, burst: 50))
    #expect(try await policy(["SENDS_PER_SECOND": "0"]).everyone.rate(.sends) == nil)
  }

  @Test func exceptionsReplaceSomeQuotasOfAUser() async throws {
    let policy = try await policy([
      "OPEN_BROADCASTS": "7", "EXCEPTIONS": "user backend: sends=0 scheduledSends=1000000",
    ])
    let backend = policy.limits(of: "backend")
    #expect(backend.rate(.sends) == nil && backend.scheduledSends == 1_000_000 && backend.openBroadcasts == 7)
    #expect(policy.limits(of: "others") == policy.everyone)
  }

  @Test(arguments: [
    "backend: sends=1", "user backend sends=1", "user backend:", "user backend: posts=1", "user backend: sends=-1",
    "user backend: sends=x", "user : sends=1",
  ])
  func malformedExceptionsAreRefused(text: String) async throws {
    await #expect {
      try await policy(["EXCEPTIONS": text])
    } throws: { error in
      "\(error)".contains("quota.exceptions")
    }
  }

  @Test func useIsShownWithTheLimits() async throws {
    let settings = try Settings.load(
      file: nil, environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9092"])
    let now = UnixTime(milliseconds: 1_795_248_000_000)
    let use = QuotaUse(
      user: "ann", reservedUntil: [.sends: now.milliseconds * 1000 + 500_000], stocks: [.openBroadcasts: 3], devices: 2)
    let lines = QuotaLine.lines(
      of: use, in: try #require(settings.hubs.first), limits: settings.registry, at: now)
    #expect(
      lines.map(\.text) == [
        "default ann sends 500 of 60000", "default ann devices 0 of 100000000", "default ann registrations 0 of 10000",
        "default ann storedBytes 0 of 4294967296", "default ann openBroadcasts 3 of 100",
        "default ann scheduledSends 0 of 100000", "default ann scheduledBytes 0 of 268435456",
        "default ann failedLogins 0 of 5000", "default ann reads 0 of 5000", "default ann devicesOfUser 2 of 200",
      ])
  }
}
