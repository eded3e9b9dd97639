import Crypto
import FanfareCore
import Testing

@testable import FrontEnd

@Suite struct KeySetStateTests {
  private static let start = UnixTime(milliseconds: 1_795_248_000_000)
  private static let schedule = KeySetState.Schedule(
    refreshInterval: .seconds(900), unknownKeyInterval: .seconds(60), maximumAge: .seconds(3600))

  private static func keys(_ id: String) async throws -> VerificationKeys {
    try await VerificationKeys(
      TestIssuer.keySet([.p256(id, P256.Signing.PrivateKey())]), algorithms: TokenAlgorithm.usual)
  }

  /// The finding as text.
  private func find(_ id: String, _ state: inout KeySetState, after seconds: Int64) -> String {
    let (finding, startsFetch) = state.find(id, .es256, at: Self.start + .seconds(seconds))
    let text =
      switch finding {
      case .found(_, let generation): "found \(generation)"
      case .unknown: "unknown"
      case .wait: "wait"
      case .unavailable: "unavailable"
      case .notFetched: "not fetched"
      }
    return startsFetch ? text + ", fetch" : text
  }

  private func isDue(_ state: inout KeySetState, after seconds: Int64) -> Bool {
    state.beginFetchIfDue(at: Self.start + .seconds(seconds))
  }

  @Test func firstFetchIsAwaited() async throws {
    var state = KeySetState(Self.schedule)
    #expect(find("a", &state, after: 0) == "unavailable")
    #expect(isDue(&state, after: 0))
    #expect(!isDue(&state, after: 0), "one fetch at a time")
    #expect(find("a", &state, after: 0) == "wait")
    state.fetched(.changed(try await Self.keys("a")), at: Self.start)
    #expect(find("a", &state, after: 0) == "found 1")
  }

  @Test func unknownKeyStartsAFetchOnceAMinute() async throws {
    var state = KeySetState(Self.schedule)
    state.fetched(.changed(try await Self.keys("a")), at: Self.start)
    #expect(find("b", &state, after: 1) == "wait, fetch")
    #expect(find("c", &state, after: 1) == "wait")
    #expect(find("a", &state, after: 1) == "found 1", "known keys need not wait")
    state.fetched(.unchanged, at: Self.start + .seconds(2))
    #expect(find("b", &state, after: 2) == "unknown")
    #expect(find("c", &state, after: 60) == "not fetched", "the fetch may have begun before the key was published")
    #expect(find("b", &state, after: 61) == "wait, fetch")
    state.fetched(.changed(try await Self.keys("b")), at: Self.start + .seconds(62))
    #expect(find("b", &state, after: 62) == "found 2")
    #expect(find("c", &state, after: 62) == "unknown")
    // A clock that is set back does not stop the refresh.
    #expect(find("a", &state, after: -1000) == "wait, fetch")
  }

  /// A token with an invented key id must not delay those with the next key of the issuer.
  @Test func keyThatNoFetchHasLookedForMayBeANewOne() async throws {
    var state = KeySetState(Self.schedule)
    state.fetched(.changed(try await Self.keys("a")), at: Self.start)
    #expect(find("invented", &state, after: 1) == "wait, fetch")
    state.fetched(.unchanged, at: Self.start + .seconds(2))
    #expect(find("invented", &state, after: 3) == "unknown")
    #expect(find("b", &state, after: 3) == "not fetched")
    #expect(find("b", &state, after: 60) == "not fetched")
    #expect(find("c", &state, after: 60) == "not fetched")
    #expect(find("invented", &state, after: 61) == "wait, fetch")
    state.fetched(.changed(try await Self.keys("b")), at: Self.start + .seconds(62))
    #expect(find("b", &state, after: 62) == "found 2")
    #expect(find("c", &state, after: 62) == "unknown", "it was asked for before the fetch")
    #expect(find("a", &state, after: 62) == "unknown", "it was withdrawn")
    for number in 0..<10_000 { #expect(find("\(number)", &state, after: 62) == "not fetched") }
    #expect(find("0", &state, after: 121) == "wait, fetch")
    for number in 10_000..<20_000 { #expect(find("\(number)", &state, after: 121) == "wait") }
    #expect(state.remembered <= 2 * KeySetState.maximumMissing)
  }

  @Test func keyThatWasAskedForDuringAFailedFetchIsLookedForByTheNext() async throws {
    var state = KeySetState(Self.schedule)
    state.fetched(.changed(try await Self.keys("a")), at: Self.start)
    #expect(find("b", &state, after: 1) == "wait, fetch")
    #expect(find("c", &state, after: 1) == "wait")
    state.fetched(.failed("down"), at: Self.start + .seconds(2))
    #expect(isDue(&state, after: 7))
    #expect(find("d", &state, after: 7) == "wait")
    state.fetched(.unchanged, at: Self.start + .seconds(8))
    for id in ["b", "c"] { #expect(find(id, &state, after: 9) == "unknown") }
    #expect(find("d", &state, after: 9) == "not fetched", "it was asked for during the fetch")
  }

  @Test func oldKeysServeWhileFetchesFailUpToTheLimit() async throws {
    var state = KeySetState(Self.schedule)
    state.fetched(.changed(try await Self.keys("a")), at: Self.start)
    #expect(!isDue(&state, after: 899))
    #expect(isDue(&state, after: 900))
    var time: Int64 = 900
    // 5, 10, 20, 40, then 60 seconds.
    for delay in [5, 10, 20, 40, 60, 60] as [Int64] {
      state.fetched(.failed("down"), at: Self.start + .seconds(time))
      #expect(!isDue(&state, after: time + delay - 1))
      #expect(isDue(&state, after: time + delay))
      time += delay
    }
    #expect(find("a", &state, after: 3599) == "found 1")
    state.fetched(.failed("down"), at: Self.start + .seconds(3599))
    #expect(find("b", &state, after: 3599) == "wait, fetch")
    state.fetched(.failed("down"), at: Self.start + .seconds(3599))
    #expect(find("b", &state, after: 3599) == "unavailable", "the key may be a new one")
    #expect(find("a", &state, after: 3600) == "unavailable")
    #expect(!state.isUsable(at: Self.start + .seconds(3600)) && state.failure == "down")
    state.fetched(.unchanged, at: Self.start + .seconds(3700))
    #expect(find("a", &state, after: 3700) == "found 1")
    #expect(state.failure == nil)
  }
}
