import FanfareCore
import Support
import Testing

@testable import PushServices

/// Which connections a provider token may go to.
@Suite struct APNsCredentialTests {
  private static let renewed = Fixtures.now + ProviderTokenState.renewalAge

  /// A connection whose token has expired calls any other expired, too.
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
    // A further answer from there says nothing of where the token goes now.
    _ = try credential.expired(first, now: Self.renewed)
    credential.leaveConnections(of: first)
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
