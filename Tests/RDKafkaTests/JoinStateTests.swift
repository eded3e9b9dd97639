import Testing

@testable import RDKafka

struct JoinStateTests {
  /// A log line in the form of librdkafka 2.0.2.
  private func line(_ old: String, _ new: String, group: String = "fanfare.workers") -> String {
    #"[thrd:main]: Group "\#(group)" changed join state \#(old) -> \#(new) (v1, state up)"#
  }

  @Test func memberIsJoiningUntilItKnowsItsAssignment() {
    let state = JoinState()
    #expect(!state.isJoining)
    let states = [
      "init", "wait-join", "wait-metadata", "wait-sync", "wait-assign-call", "steady", "wait-unassign-call",
      "wait-incr-unassign-to-complete", "init", "wait-join", "wait-sync", "wait-unassign-call",
      "wait-unassign-to-complete",
    ]
    var answers: [Bool] = []
    for (old, new) in zip(states, states.dropFirst()) {
      state.read(facility: "CGRPJOINSTATE", text: line(old, new))
      answers.append(state.isJoining)
    }
    #expect(answers == [true, true, true, false, false, false, false, true, true, true, false, false])
  }

  @Test func groupMayHaveAnyName() {
    let state = JoinState()
    state.read(facility: "CGRPJOINSTATE", text: line("steady", "init", group: "a -> steady"))
    #expect(state.isJoining)
    state.read(facility: "CGRPJOINSTATE", text: line("wait-sync", "wait-assign-call", group: "-> init"))
    #expect(!state.isJoining)
  }

  @Test func otherLinesAreIgnored() {
    let state = JoinState()
    state.read(facility: "CGRPJOINSTATE", text: line("steady", "wait-join"))
    for text in ["", "->", "Group \"g\" changed join state steady ->", "no arrow"] {
      state.read(facility: "CGRPJOINSTATE", text: text)
      #expect(state.isJoining)
    }
    state.read(facility: "CGRPSTATE", text: #"Group "g" changed state wait-coord -> steady (join-state steady)"#)
    #expect(state.isJoining)
  }
}
