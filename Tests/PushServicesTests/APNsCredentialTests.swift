import FanfareCore
import Support
import Testing

@testable import PushServices

/// The connections on which a provider token may be used.
@Suite struct APNsCredentialTests {
  private static let renewed = Fixtures.now + ProviderTokenState.renewalAge

  /// On a connection whose token has expired, APNs reports every other token as expired too.
  @Test func youngerTokenNeverUsesASpentConnection() throws {
    let credential = try Self.credential()
    let first = try credential.fields(now: Fixtures.now)
    let second = try credential.fields(now: Self.renewed)
    #expect(second.generation != first.generation)
    #expect(second.connectionGeneration == first.connectionGeneration)
    #expect(try credential.expired(first, now: Self.renewed))
    let last = try credential.fields(now: Self.renewed)
    #expect(last.generation == second.generation)
    #expect(last.connectionGeneration > second.connectionGeneration)
    // Further answers on the old connection do not matter for the new one.
    _ = try credential.expired(first, now: Self.renewed)
    credential.replaceConnections(of: first)
    #expect(try credential.fields(now: Self.renewed).connectionGeneration == last.connectionGeneration)
  }

  @Test func regularReplacementUsesOtherConnections() throws {
    let credential = try Self.credential()
    let first = try credential.fields(now: Fixtures.now)
    // Too young to be replaced.
    #expect(try !credential.expired(first, now: Fixtures.now + .seconds(60)))
    #expect(try credential.fields(now: Fixtures.now + .seconds(60)).connectionGeneration == first.connectionGeneration)
    let second = try credential.fields(now: Self.renewed)
    #expect(second.generation != first.generation)
    #expect(second.connectionGeneration > first.connectionGeneration)
  }

  @Test func previousTokenUsesOtherConnectionsToo() throws {
    let credential = try Self.credential()
    _ = try credential.fields(now: Fixtures.now)
    let second = try credential.fields(now: Self.renewed)
    // Two answers of one batch.
    credential.updatedTooOften(generation: second.generation, now: Self.renewed)
    #expect(try credential.expired(second, now: Self.renewed))
    let last = try credential.fields(now: Self.renewed)
    #expect(last.generation != second.generation)
    #expect(last.connectionGeneration > second.connectionGeneration)
  }

  private static func credential() throws -> APNsCredential {
    try APNsCredential(TestKeys.apns(port: 443, trustRoots: ""))
  }
}

@Suite struct ConnectionRenewalTests {
  @Test func renewalIsDueOncePerEpochAndNotAgainAtOnce() {
    var renewal = ConnectionRenewal()
    let now = Fixtures.now
    let answers = [(0, 0), (0, 60), (1, 29), (1, 30)].map { (epoch, seconds) in
      renewal.isDue(epoch: epoch, now: now + .seconds(seconds))
    }
    #expect(answers == [true, false, false, true])
    #expect(renewal.epoch == 2)
  }
}
