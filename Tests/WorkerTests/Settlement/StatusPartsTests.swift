import FanfareCore
import Support
import Testing

@testable import Worker

struct StatusPartsTests {
  private func results(_ count: Int, seed: UInt64) -> [DeviceResult] {
    var random = SeededGenerator(seed: seed)
    return (0..<count).map { _ in
      DeviceResult(
        registration: RegistrationID(high: random.next(), low: random.next()), platform: .fcm, outcome: .delivered, reason: "",
        status: 200,
        attempts: 1)
    }
  }

  @Test func `few devices are one part, none is one part`() {
    #expect(StatusParts.split([], limit: 10).map(\.part) == [0])
    let parts = StatusParts.split(results(10, seed: 1), limit: 10)
    #expect(parts.count == 1)
    #expect(parts[0].results.count == 10)
  }

  @Test func `many are spread over parts, each device in one, the same one when some have gone`() {
    let all = results(10_000, seed: 2)
    let parts = StatusParts.split(all, limit: 1_000)
    #expect(parts.count == 16)
    #expect(parts.flatMap(\.results).count == 10_000)
    #expect(Set(parts.flatMap(\.results)) == Set(all))
    #expect(parts.allSatisfy { $0.results.count < 1_000 })
    let places = Dictionary(uniqueKeysWithValues: parts.flatMap { part in part.results.map { ($0.registration, part.part) } })
    for part in StatusParts.split(Array(all.dropFirst(100)), limit: 1_000) {
      for result in part.results { #expect(places[result.registration] == part.part) }
    }
  }
}
