import FanfareCore
import Foundation
import HTTPServer
import Operations
import Support
import Testing

@testable import FrontEnd

/// Budgets of failed logins.
@Suite(.timeLimit(.minutes(2))) struct LoginGuardTests {
  private func makeGuard(perAddress: Int = 100, perUser: Int = 3, capacity: Int = 1000) -> LoginGuard {
    var limits = LoginLimits()
    limits.perAddress = perAddress
    limits.perUser = perUser
    limits.window = .seconds(60)
    limits.knownLifetime = .seconds(86_400)
    limits.capacity = capacity
    let start = ContinuousClock.now
    limits.now = { start }
    return LoginGuard(limits: limits)
  }

  private func credentials(_ user: String) throws -> Credentials {
    .basic(try #require(BasicCredentials(user: user, password: "p")))
  }

  private func address(_ text: String) throws -> ClientAddress { try #require(ClientAddress(text)) }

  /// Returns the wait in seconds, or nil if the login was admitted.
  private func attempt(_ logins: LoginGuard, _ user: String, at text: String, isRight: Bool = false) throws -> Int? {
    do {
      let admission = try logins.admit(try credentials(user), hub: "default", from: try address(text))
      if isRight { logins.succeed(admission) } else { try logins.fail(admission) }
      return nil
    } catch let refusal as Refusal {
      #expect(refusal.code == .tooManyFailures)
      return refusal.retryAfter
    }
  }

  @Test func failuresOfAUserAndOfAnAddressAreLimited() throws {
    let logins = makeGuard(perAddress: 5)
    for _ in 0..<3 { #expect(try attempt(logins, "bob", at: "192.0.2.1") == nil) }
    #expect(try attempt(logins, "bob", at: "192.0.2.1") == 20)
    #expect(try attempt(logins, "carol", at: "192.0.2.1") == nil)
    #expect(try attempt(logins, "dave", at: "192.0.2.1") == nil)
    #expect(try attempt(logins, "erin", at: "192.0.2.1") == 12, "the address has failed five times")
    #expect(try attempt(logins, "erin", at: "192.0.2.2") == nil)
  }

  /// Strangers who fail at a few addresses do not keep the user waiting at a new one; those at many do.
  @Test func userAtANewAddressIsNotKeptWaitingByFailuresElsewhere() throws {
    let logins = makeGuard()
    for number in 1...19 {
      for _ in 0..<3 { #expect(try attempt(logins, "bob", at: "192.0.2.\(number)") == nil) }
      #expect(try attempt(logins, "bob", at: "192.0.2.\(number)") == 20)
    }
    #expect(try attempt(logins, "bob", at: "198.51.100.7", isRight: true) == nil)
    for _ in 0..<3 { #expect(try attempt(logins, "bob", at: "192.0.2.20") == nil) }
    #expect(try attempt(logins, "bob", at: "198.51.100.8") == 1, "guessing at many addresses is limited too")
    #expect(try attempt(logins, "bob", at: "198.51.100.7", isRight: true) == nil)
  }

  @Test func addressesOfOneNetworkShareABudget() throws {
    let logins = makeGuard(perAddress: 2)
    #expect(try attempt(logins, "a", at: "2001:db8::1") == nil)
    #expect(try attempt(logins, "b", at: "2001:db8::2") == nil)
    #expect(try attempt(logins, "c", at: "2001:db8::3") != nil)
    #expect(try attempt(logins, "c", at: "2001:db8:0:1::3") == nil)
  }

  /// The lock-out attack: strangers fail under a user's name.
  @Test func userIsNotLockedOutByStrangersWhereItIsKnown() throws {
    let logins = makeGuard()
    #expect(try attempt(logins, "bob", at: "198.51.100.7", isRight: true) == nil)
    for number in 1...60 { #expect(try attempt(logins, "bob", at: "192.0.2.\(number)") == nil) }
    #expect(try attempt(logins, "bob", at: "192.0.2.61") != nil)
    for _ in 0..<100 { #expect(try attempt(logins, "bob", at: "198.51.100.7", isRight: true) == nil) }
    // Where the user is known, guessing is limited too.
    for _ in 0..<3 { #expect(try attempt(logins, "bob", at: "198.51.100.7") == nil) }
    #expect(try attempt(logins, "bob", at: "198.51.100.7") != nil)
  }

  /// Requests with one wrong password share one hash, so that all of them fail at once.
  @Test func knownUserWhoFailsOftenAtOnceWaitsForOneFailureOnly() throws {
    let logins = makeGuard()
    #expect(try attempt(logins, "bob", at: "198.51.100.7", isRight: true) == nil)
    let admissions = try (0..<200).map { _ in
      try logins.admit(try credentials("bob"), hub: "default", from: try address("198.51.100.7"))
    }
    for admission in admissions { try logins.fail(admission) }
    #expect(try attempt(logins, "bob", at: "198.51.100.7") == 20)
  }

  @Test func blockLastsAsLongAsTheSharedQuotaSays() throws {
    let logins = makeGuard()
    let admissions = try (1...2).map { _ in
      try logins.admit(try credentials("bob"), hub: "default", from: try address("192.0.2.1"))
    }
    logins.block(admissions[0], for: .seconds(7200))
    try logins.fail(admissions[1])
    #expect(try attempt(logins, "bob", at: "192.0.2.2") == 7200)
  }

  @Test func tokensWithUnfetchedKeysTakeAPartOfTheAddressBudget() throws {
    let logins = makeGuard(perAddress: 2)
    func suspect() throws {
      logins.suspect(try logins.admit(.bearer("t"), hub: "default", from: try address("192.0.2.1")))
    }
    for _ in 0..<20 { try suspect() }
    #expect(try attempt(logins, "bob", at: "192.0.2.1") == nil, "twenty are one failure")
    #expect(try attempt(logins, "bob", at: "192.0.2.1") == 30)
    for _ in 0..<1000 { try suspect() }
    #expect(try attempt(logins, "bob", at: "192.0.2.1") == 30)
    #expect(try attempt(logins, "bob", at: "192.0.2.2") == nil)
  }

  @Test func rightAndUncheckedLoginsTakeNothing() throws {
    let logins = makeGuard(perAddress: 2)
    for number in 0..<50 { #expect(try attempt(logins, "user-\(number)", at: "192.0.2.1", isRight: true) == nil) }
    for _ in 0..<50 { logins.abandon(try logins.admit(try credentials("x"), hub: "default", from: try address("::1"))) }
    #expect(logins.budgets == 0)
  }

  @Test func wrongTokensAreLimitedAndRightOnesAlwaysChecked() throws {
    let logins = makeGuard(perAddress: 2)
    func fail() throws { try logins.fail(try logins.admit(.bearer("t"), hub: "default", from: try address("::1"))) }
    try fail()
    try fail()
    #expect(throws: Refusal.self) { try fail() }
    logins.succeed(try logins.admit(.bearer("t"), hub: "default", from: try address("::1")))
  }

  @Test func memoryIsBounded() throws {
    let logins = makeGuard(capacity: 100)
    for number in 0..<1000 { _ = try attempt(logins, "user-\(number)", at: "192.0.\(number / 200).\(number % 200)") }
    #expect(logins.budgets <= 100)
  }

  /// A name alone, which anybody may know, does not make a caller known.
  @Test func userIsKnownOnlyAtTheAddressThatAuthenticatedIt() async throws {
    let seen = OriginRecorder()
    try await Harness.run({
      $0.configuration.proxies = try #require(TrustedProxies(["127.0.0.1"]))
      $0.hubs = [FrontEndHub(name: .default, authenticators: [seen])]
    }) { app in
      for (address, password) in [("1", "alice"), ("1", "alice"), ("2", "x"), ("2", "x"), ("1", "x")] {
        let headers = [
          ("X-Forwarded-For", "192.0.2.\(address)"), ("Authorization", Harness.basic("alice", password)),
        ]
        _ = try await app.request(.get, "/api/registrations", as: nil, headers: headers)
      }
      #expect(seen.origins == ["192.0.2.1", "192.0.2.1*", "192.0.2.2", "192.0.2.2", "192.0.2.1*"])
    }
  }

  @Test func floodOfFailuresIsAnswered429AndKnownUsersGoOn() async throws {
    let log = LogRecorder()
    try await Harness.run({
      $0.configuration.logins.perAddress = 5
      $0.configuration.logins.perUser = 3
      $0.security = SecurityLog(logger: log.logger)
    }) { app in
      #expect(try await app.request(.get, "/api/sends").status == 200)
      // Alice fails where it is known, which the address does not pay for.
      for (user, count) in [("alice", 1), ("bob", 3), ("dave", 2)] {
        for _ in 0..<count {
          try await app.request(
            .get, "/api/sends", as: nil, headers: [("Authorization", Harness.basic(user, "x"))]
          )
          .expectProblem(401, "unauthenticated")
        }
      }
      let refused = try await app.request(.get, "/api/sends", as: "carol")
      refused.expectProblem(429, "tooManyFailures")
      #expect(try await app.request(.get, "/api/sends").status == 200, "alice is known at this address")
      #expect(log.text.contains("login.refused"))
      #expect(!log.text.contains("carol"))
    }
  }
}
