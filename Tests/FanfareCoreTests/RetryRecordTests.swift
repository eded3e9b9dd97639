import FanfareCore
import Foundation
import Support
import Testing

struct RetryRecordTests {
  private static let time = UnixTime(milliseconds: 1_800_000_000_000)

  static func record(parts: Int = 1, cameEarly: Bool = false, send: SendRequest? = nil) -> RetryRecord {
    let send =
      send
      ?? SendRequest(
        id: .random(), hub: .default, sender: "tester", acceptedAt: time, audience: .user("bob"),
        content: Content(message: Message(body: "hello \"you\"")), timeToLive: 600)
    let waiting = RetryRecord.Waiting(
      registration: .random(), platform: .apns, notBefore: time + .seconds(15), attempts: 3, heldAttempts: 1, waits: 2,
      wasUnanswered: true, firstAttemptAt: time, reason: "Busy", status: 503, contradictions: 2)
    let fresh = RetryRecord.Waiting(
      registration: .random(), platform: .wns, notBefore: time + .seconds(10), attempts: 0, heldAttempts: 0, waits: 0,
      wasUnanswered: false, firstAttemptAt: nil, reason: "", status: 0)
    let done = DeviceResult(
      registration: .random(), platform: .fcm, outcome: .rejected, reason: "PayloadTooLarge", status: 413, attempts: 1,
      pushedAt: time, answeredAt: time + .milliseconds(30))
    return RetryRecord(
      send: send, part: parts - 1, parts: parts, attempt: parts > 1 ? .random() : nil, deferrals: 2,
      cameEarly: cameEarly,
      devices: [.waiting(waiting), .done(done), .waiting(fresh)],
      counts: parts > 1
        ? OutcomeCounts([
          DeviceResult(
            registration: .random(), platform: .wns, outcome: .delivered, reason: "", status: 200, attempts: 1)
        ]) : OutcomeCounts(),
      times: SendTimes(consumed: time, lookedUp: time, pushed: time, answered: time + .milliseconds(40)))
  }

  @Test(arguments: [1, 3], [false, true]) func recordIsDecodedAsEncoded(parts: Int, cameEarly: Bool) throws {
    var record = Self.record(parts: parts, cameEarly: cameEarly)
    let value = record.encoded(at: Self.time)
    record.writtenAt = Self.time
    #expect(try RetryRecord.decode(value[...], recordTime: Self.time) == record)
    #expect(try RetryRecord.wait(of: value[...], at: Self.time) == .seconds(10))
    #expect(try RetryRecord.wait(of: value[...], at: Self.time + .seconds(-3600)) == .seconds(10))
    // For a record that came early the reader's clock does not matter.
    #expect(try RetryRecord.wait(of: value[...], at: Self.time + .seconds(9)) == .seconds(cameEarly ? 10 : 1))
    // The reader's clock is an hour behind: `writtenAt` is never in the reader's future.
    let earlier = Self.time + .seconds(-3600)
    #expect(try RetryRecord.decode(value[...], recordTime: earlier, now: earlier).writtenAt == earlier)
    #expect(throws: RecordError.self) { try SendRequest.decode(value[...], recordTime: Self.time) }
  }

  /// A retry record must allow the same nesting as a send.
  @Test func deepestPayloadOfSendFits() throws {
    var deepest: [UInt8]?
    for depth in 1...40 {
      let payload = Array(
        (String(repeating: #"{"a":"#, count: depth) + "1" + String(repeating: "}", count: depth)).utf8)
      let send = SendRequest(
        id: .random(), acceptedAt: Self.time, audience: .user("bob"), content: Content.of(message: nil, apns: payload))
      guard (try? SendRequest.decode(send.encoded()[...], recordTime: Self.time)) != nil else { break }
      deepest = payload
      let record = Self.record(send: send)
      #expect(try RetryRecord.decode(record.encoded(at: Self.time)[...], recordTime: Self.time).send == send)
      #expect(throws: Never.self) { try RetryRecord.wait(of: record.encoded(at: Self.time)[...], at: Self.time) }
    }
    #expect(deepest != nil)
  }

  @Test(arguments: [
    (#""part":0"#, #""part":1"#, "data.part must be 0 to 0"),
    (#""parts":1"#, #""parts":0"#, "data.parts must be 1 to 10000000"),
    (#""parts":1"#, #""parts":2"#, "data.attempt is missing"),
    (#""deferrals":2"#, #""deferrals":0"#, "data.deferrals must be 1 to 1000000"),
    (#""deferrals":2"#, #""other":2"#, "data.deferrals is missing"),
    (#""send":"#, #""other":"#, "data.send is missing"),
    (#""attempts":3"#, #""attempts":-1"#, "data.devices[0].attempts must be 0 to 1000000"),
  ])
  func errorsContainTheField(original: String, replacement: String, problem: String) throws {
    let text = String(decoding: Self.record().encoded(at: Self.time), as: UTF8.self)
    let value = Array(text.replacing(original, with: replacement, maxReplacements: 1).utf8)
    let error = #expect(throws: RecordError.self) { try RetryRecord.decode(value[...], recordTime: Self.time) }
    #expect(error?.detail == problem)
  }

  /// A deferred page of 5,000 devices can be redriven if it is dead-lettered.
  @Test func deadLetterOfADeferredPageIsWhole() throws {
    let device = RetryRecord.Waiting(
      registration: .random(), platform: .apns, notBefore: Self.time, attempts: 3, heldAttempts: 1, waits: 2,
      wasUnanswered: true, firstAttemptAt: Self.time, reason: "ServiceUnavailable", status: 503, contradictions: 2)
    let value = RetryRecord(
      send: Self.record().send, part: 3, parts: 9, attempt: .random(), deferrals: 1,
      devices: Array(repeating: .waiting(device), count: 5000)
    ).encoded(at: Self.time)
    let letter = DeadLetter(
      reason: .unknownHub, detail: "hub", origin: .init(topic: "fanfare.sends", partition: 0, offset: 1), at: Self.time,
      key: nil, value: value)
    let read = try DeadLetter.decode(letter.encoded()[...])
    #expect(read.isWhole)
    // Compared outside of #expect, which would compute the difference of a megabyte.
    let isSame = read.value == value
    #expect(isSame)
  }

  @Test func repeatedDevicesMemberIsReplacedByTheLast() throws {
    var record = Self.record()
    let text = String(decoding: record.encoded(at: Self.time), as: UTF8.self)
    let list = try #require(text.firstMatch(of: /"devices":\[.*?\]/)).output
    record.writtenAt = Self.time
    let twice = Array(text.replacing(list, with: "\(list),\(list)").utf8)
    #expect(try RetryRecord.decode(twice[...], recordTime: Self.time) == record)
  }

  @Test func deferredPagesOfTwoBroadcastsHaveDifferentIdentities() {
    let records = (0..<2).map { _ in
      let send = Self.record().send
      return RetryRecord(
        send: SendRequest(
          id: .random(), acceptedAt: send.acceptedAt, audience: .everyone, content: send.content), part: 3, parts: 9,
        attempt: nil,
        deferrals: 1, devices: [])
    }
    let identities = records.map {
      RetryRecord(
        send: $0.send, part: 3, parts: 9, attempt: SegmentRecord.attempt(of: $0.send), deferrals: 1, devices: []
      ).identity
    }
    #expect(identities[0] != identities[1])
  }

  @Test func everyDeferralAndPartHasItsOwnIdentity() {
    let record = Self.record(parts: 3)
    var identities: Set<SendID> = [record.identity]
    for part in 0..<2 {
      for deferrals in 1...50 {
        identities.insert(
          RetryRecord(
            send: record.send, part: part, parts: 3, attempt: record.attempt, deferrals: deferrals,
            devices: record.devices
          ).identity)
      }
    }
    #expect(identities.count == 101)
    #expect(!identities.contains(record.send.id))
  }
}
