import FanfareCore
import Testing

@testable import PushServices

@Suite final class ProviderTokenStateTests {
  private struct Broken: Error {}
  private var state = ProviderTokenState()
  private var time = Fixtures.now

  private func value() throws -> String { try state.token(now: time) { "t\($0.seconds)" }.value }
  private func generation() throws -> Int { try state.token(now: time) { "t\($0.seconds)" }.generation }

  private func expired(_ generation: Int) throws -> Bool {
    try state.expired(generation: generation, now: time) { "t\($0.seconds)" }
  }
  private func valueIfSigningFails() throws -> String { try state.token(now: time) { _ in throw Broken() }.value }

  @Test func tokenIsKeptForFortyFiveMinutes() throws {
    let first = try value()
    time = time + .seconds(45 * 60 - 1)
    #expect(try value() == first)
    time = time + .seconds(1)
    #expect(try value() != first)
  }

  @Test func tokenIsSignedAtMostEveryTwentyMinutes() throws {
    let first = try generation()
    time = time + .seconds(20 * 60 - 1)
    #expect(try !expired(first))
    #expect(try generation() == first)
    time = time + .seconds(1)
    #expect(try expired(first))
    let second = try generation()
    #expect(second != first)
    // An answer to the previous token changes nothing.
    time = time + .seconds(30 * 60)
    #expect(try expired(first))
    #expect(try generation() == second)
  }

  @Test func previousTokenIsUsedAfterTooManyUpdates() throws {
    let first = try value()
    time = time + .seconds(45 * 60)
    let second = try value()
    #expect(second != first)
    state.updatedTooOften(generation: try generation(), now: time)
    #expect(try value() == first)
    // Going back again would be another update.
    state.updatedTooOften(generation: try generation(), now: time)
    #expect(try value() == first)
    // The old token is due, but nothing is signed until 20 minutes after the last signature.
    time = time + .seconds(14 * 60)
    #expect(try value() == first)
    time = time + .seconds(6 * 60)
    let third = try value()
    #expect(third != first)
    #expect(third != second)
  }

  /// A token signed too recently is a smaller fault than one that is an hour old.
  @Test func newerTokenIsUsedWhenThePreviousOneHasExpired() throws {
    _ = try value()
    time = time + .seconds(45 * 60)
    let second = try value()
    state.updatedTooOften(generation: try generation(), now: time)
    let fallback = try generation()
    time = time + .seconds(15 * 60)
    #expect(try value() == second)
    #expect(try generation() > fallback)
  }

  @Test func tooManyUpdatesWithoutPreviousTokenChangesNothing() throws {
    let first = try value()
    state.updatedTooOften(generation: try generation(), now: time)
    #expect(try value() == first)
  }

  @Test func failedSignatureKeepsTheOldToken() throws {
    #expect(throws: Broken.self) { try self.valueIfSigningFails() }
    let first = try value()
    time = time + .seconds(50 * 60)
    #expect(try valueIfSigningFails() == first)
    time = time + .seconds(10 * 60)
    #expect(throws: Broken.self) { try self.valueIfSigningFails() }
  }

  /// APNs refuses tokens from the future, and nothing else would replace them.
  @Test(arguments: [2, 30, 44]) func tokenFromTheFutureIsReplacedWhenTheClockIsCorrected(minutes: Int64) throws {
    let first = try value()
    let generation = try generation()
    time = time + .seconds(-60 * minutes)
    let second = try value()
    #expect(second != first)
    #expect(try self.generation() > generation)
    // As often as any other, although the last signature seems to lie in the future.
    for _ in 0..<44 {
      time = time + .seconds(60)
      #expect(try value() == second)
    }
  }

  @Test func clockThatWasAheadForAWhileCostsNoSignature() throws {
    let first = try value()
    time = time + .seconds(50 * 60)
    let ahead = try value()
    #expect(ahead != first)
    time = time + .seconds(-40 * 60)
    #expect(try value() == first)
    time = time + .seconds(35 * 60)
    let next = try value()
    #expect(next != first && next != ahead)
  }

  @Test func tokenSurvivesAClockThatStepsBack() throws {
    let first = try value()
    time = time + .seconds(-60)
    #expect(try value() == first)
    time = time + .seconds(-3 * 3600)
    #expect(try value() != first)
  }
}
