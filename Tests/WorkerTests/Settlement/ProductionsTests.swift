import RDKafka
import Testing

@testable import Worker

struct ProductionsTests {
  @Test(arguments: [
    [Production.Kind.status, .page, .status, .segment, .status], [.page], [.status, .shortenedDeadLetter], [],
  ])
  func broadcastRecordsAreTakenOutInOrderWithPurposes(kinds: [Production.Kind]) {
    var productions = Productions()
    for (number, kind) in kinds.enumerated() {
      productions.append(
        Production(kind: kind, ticket: Ticket(slot: number, generation: 0)),
        ProducerRecord(topic: "topic", key: nil, value: [UInt8(number)]))
    }
    let all = productions
    let broadcasts = productions.takeBroadcasts()
    #expect(broadcasts.filter { !$0.production.isOfBroadcast }.isEmpty)
    #expect(productions.filter(\.production.isOfBroadcast).isEmpty)
    #expect(broadcasts.count + productions.count == all.count)
    for part in [broadcasts, productions] {
      #expect(part.map(\.record.value).elementsEqual(part.records.map(\.value)))
      for index in part.indices {
        #expect(part.ticket(at: index) == part[index].production.ticket)
        #expect(part[index].record.value == [UInt8(part.ticket(at: index).slot)])
      }
      #expect(part.map(\.production.ticket.slot) == part.map(\.production.ticket.slot).sorted())
    }
  }
}
