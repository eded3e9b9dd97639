import Testing

@testable import RDKafka

struct MembershipTests {
  /// As librdkafka 2.0.2 writes it.
  private func line(_ old: String, _ new: String, group: String = "fanfare.workers") -> String {
    #"[thrd:main]: Group "\#(group)" changed join state \#(old) -> \#(new) (v1, state up)"#
  }

  @Test func aMemberJoinsFromItsRequestUntilItKnowsItsAssignment() {
    let membership = Membership()
    #expect(!membership.isJoining)
    let states = [
      "init", "wait-join", "wait-metadata", "wait-sync", "wait-assign-call", "steady", "wait-unassign-call",
      "wait-incr-unassign-to-complete", "init", "wait-join", "wait-sync", "wait-unassign-call",
      "wait-unassign-to-complete",
    ]
    var answers: [Bool] = []
    for (old, new) in zip(states, states.dropFirst()) {
      membership.read(facility: "CGRPJOINSTATE", text: line(old, new))
      answers.append(membership.isJoining)
    }
    #expect(answers == [true, true, true, false, false, false, false, true, true, true, false, false])
  }

  @Test func aGroupMayHaveAnyName() {
    let membership = Membership()
    membership.read(facility: "CGRPJOINSTATE", text: line("steady", "init", group: "a -> steady"))
    #expect(membership.isJoining)
    membership.read(facility: "CGRPJOINSTATE", text: line("wait-sync", "wait-assign-call", group: "-> init"))
    #expect(!membership.isJoining)
  }

  @Test func otherLinesSayNothing() {
    let membership = Membership()
    membership.read(facility: "CGRPJOINSTATE", text: line("steady", "wait-join"))
    for text in ["", "->", "Group \"g\" changed join state steady ->", "no arrow"] {
      membership.read(facility: "CGRPJOINSTATE", text: text)
      #expect(membership.isJoining)
    }
    membership.read(facility: "CGRPSTATE", text: #"Group "g" changed state wait-coord -> steady (join-state steady)"#)
    #expect(membership.isJoining)
  }
}
