import RDKafka
import Testing

struct CreditWindowTests {
  @Test func creditFollowsTheRoomInRecordsAndBytes() {
    var window = CreditWindow()
    func grant(_ records: Int = 1000, _ bytes: Int = 1_000_000, step: Int = 1) -> Int {
      window.grant(records: records, bytes: bytes, step: step)
    }
    // Before the first observation records are estimated to be large.
    #expect(grant() == 61)
    #expect(grant() == 0)
    for _ in 0..<40 {
      window.receive(records: 61, bytes: 61 * 100)
      _ = grant()
    }
    #expect(window.outstanding == 1000)
    window.receive(records: 1, bytes: nil)
    #expect(grant(step: 2) == 0, "small grants are collected")
    // A batch of huge records reduces the credit at once, but never below one record while there is room.
    window.receive(records: 9, bytes: 9 * 5_000_000)
    #expect(grant() == -989)
    window.receive(records: 2, bytes: nil)
    #expect(grant(1000, 0) == 1, "what came uncalled is made good")
    #expect(grant(step: 2) == 1, "without credit each grant counts")
  }
}
