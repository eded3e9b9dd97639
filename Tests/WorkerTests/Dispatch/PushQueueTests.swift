import Testing

@testable import Worker

@Suite struct PushQueueTests {
  @Test func singleSendsGoFirstButNotAlways() throws {
    var queue = PushQueue()
    for slot in 0..<100 {
      queue.append(Ticket(slot: slot, generation: 0, isBulk: true))
      queue.append(Ticket(slot: slot, generation: 0))
    }
    var taken: [Bool] = []
    for _ in 0..<80 {
      let next = queue.popFirst(mayTakeBulk: true)
      taken.append(try #require(next).isBulk)
    }
    #expect(taken.count(where: \.self) == 10 && taken.first == false)
    #expect(taken.indices.allSatisfy { taken[max(0, $0 - 7)...$0].contains(false) })
    for _ in 0..<30 { #expect(queue.popFirst(mayTakeBulk: false)?.isBulk == false) }
    #expect(queue.popFirst(mayTakeBulk: false) == nil)
    #expect(queue.popFirst(mayTakeBulk: true)?.slot == 10)
    #expect(queue.count == 89)
  }
}
