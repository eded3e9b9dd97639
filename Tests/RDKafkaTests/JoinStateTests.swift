import Testing

@testable import RDKafka

struct JoinStateTests {
  /// The protocol's numbers of requests.
  private enum Request {
    static let (commit, join, heartbeat, sync): (Int16, Int16, Int16, Int16) = (8, 11, 12, 14)
  }

  @Test func memberIsJoiningUntilItKnowsItsAssignment() {
    let state = JoinState()
    #expect(!state.isJoining)
    state.sent(Request.heartbeat)
    state.sent(Request.commit)
    state.answered(Request.commit)
    #expect(!state.isJoining)
    state.sent(Request.join)
    #expect(state.isJoining)
    // Answers to earlier requests, and the generation, which has no assignment yet.
    state.answered(Request.heartbeat)
    state.answered(Request.join)
    state.sent(Request.sync)
    #expect(state.isJoining)
    state.answered(Request.sync)
    #expect(!state.isJoining)
  }

  @Test func memberThatIsRefusedJoinsAgain() {
    let state = JoinState()
    state.sent(Request.join)
    state.answered(Request.join)
    state.sent(Request.join)
    #expect(state.isJoining)
  }
}
