import FanfareCore
import Foundation
import Support
import Testing

/// Corrupted records: reading ends with a value, or with an error that contains no payload.
@Suite(.timeLimit(.minutes(2))) struct CodecFuzzTests {
  private static let mark = "SECRETMARK"
  private static let time = UnixTime(milliseconds: 1_795_248_000_123)

  private static let device = RegistrationID(high: 0x1234_5678_9ABC_4DEF, low: 0x8123_4567_89AB_CDEF)
  private static let attempt = DispatchID(high: 0x0FED_CBA9_8765_4321, low: 0x8000_0000_0000_0003)

  private static let sends: [SendRequest] = [
    SendRequest(
      id: SendID(high: 0x0190_F5FE_7C00_7000, low: 0x8000_0000_0000_0001), hub: HubName("app-2") ?? .default,
      sender: mark,
      acceptedAt: time, audience: .user(mark),
      content: Content(
        message: Message(title: mark, body: "\(mark) \"é\"", data: ["key": mark], badge: 3, sound: mark)),
      timeToLive: 600, priority: .normal, collapseKey: mark, traceparent: mark),
    SendRequest(
      id: SendID(high: 0x0190_F5FE_7C00_7000, low: 0x8000_0000_0000_0002), acceptedAt: time,
      audience: .device(.fcm, handle: mark), platforms: [PlatformSet(.fcm), PlatformSet(.apns)],
      content: Content.of(
        apns: Array(#"{"aps":{"alert":"\#(mark)"},"n":[1,2.5e3,null]}"#.utf8), wns: "<toast>\(mark)</toast>")),
    SendRequest(
      id: SendID(high: 0x0190_F5FE_7C00_7000, low: 0x8000_0000_0000_0003), acceptedAt: time,
      audience: .expression(.any([.all([.tag(mark), .not(.tag("b"))]), .tag("username:é \(mark)")])),
      content: Content(message: Message(body: mark)), maximumPerSecond: 1000),
    SendRequest(
      id: SendID(high: 0x0190_F5FE_7C00_7000, low: 0x8000_0000_0000_0004), acceptedAt: time,
      audience: Audience(anyOf: [mark, "b"]), content: Content(message: Message(body: mark))),
    SendRequest(
      id: SendID(high: 0x0190_F5FE_7C00_7000, low: 0x8000_0000_0000_0005), acceptedAt: time, audience: .everyone,
      content: Content(message: Message(body: mark))),
  ]

  private static let devices = [
    DeviceResult(registration: device, platform: .apns, outcome: .delivered, reason: "", status: 200, attempts: 1),
    DeviceResult(registration: device, platform: .fcm, outcome: .rejected, reason: mark, status: 400, attempts: 7),
  ]

  private static let status = StatusRecord(
    send: sends[0].id, hub: .default, part: 1, parts: 3, attempt: attempt, state: .settled, sender: mark,
    audience: .user(mark),
    acceptedAt: time, settledAt: time + .seconds(1), devices: devices, traceparent: mark)

  private static let retry = RetryRecord(
    send: sends[0], part: 1, parts: 2, attempt: attempt, deferrals: 2,
    devices: [
      .done(devices[1]),
      .waiting(
        RetryRecord.Waiting(
          registration: device, platform: .wns, notBefore: time, attempts: 3, heldAttempts: 1, waits: 2,
          wasUnanswered: true,
          firstAttemptAt: time, reason: mark, status: 503)),
    ])

  private static let letters = [Array(mark.utf8), [0xFF, 0x00] + Array(mark.utf8)].map { value in
    DeadLetter(
      reason: .undecodable, detail: mark, origin: DeadLetter.Origin(topic: mark, partition: 3, offset: 77), at: time,
      key: Array(mark.utf8), value: value)
  }

  @Test(arguments: UInt64(1)...4) func corruptedSendsGiveValueOrError(seed: UInt64) {
    storm(Self.sends.map { $0.encoded() }, seed: seed) { try SendRequest.decode($0, recordTime: Self.time).encoded() }
  }

  @Test(arguments: UInt64(1)...4) func corruptedStatusRecordsGiveValueOrError(seed: UInt64) {
    storm([Self.status.encoded()], seed: seed) { try StatusRecord.decode($0).encoded() }
  }

  @Test(arguments: UInt64(1)...4) func corruptedSegmentRecordsGiveValueOrError(seed: UInt64) {
    let segment = SegmentRecord(send: Self.retry.send, pages: 900, range: 20..<40)
    storm([segment.encoded(at: Self.time)], seed: seed) { value in
      try SegmentRecord.decode(value, recordTime: Self.time).encoded(at: Self.time)
    }
  }

  @Test(arguments: UInt64(1)...4) func corruptedRetryRecordsGiveValueOrError(seed: UInt64) {
    storm([Self.retry.encoded(at: Self.time)], seed: seed) { value in
      do { _ = try RetryRecord.wait(of: value, at: UnixTime(milliseconds: 0)) } catch { expectSilence(of: error) }
      return try RetryRecord.decode(value, recordTime: Self.time).encoded(at: Self.time)
    }
  }

  @Test(arguments: UInt64(1)...4) func corruptedDeadLettersGiveValueOrError(seed: UInt64) {
    storm(Self.letters.map { $0.encoded() }, seed: seed) { try DeadLetter.decode($0).encoded() }
  }

  /// Reads mutations of each document. A record that can be read must survive writing and reading again.
  private func storm(_ documents: [[UInt8]], seed: UInt64, _ reencode: (ArraySlice<UInt8>) throws -> [UInt8]) {
    var mutator = Mutator(seed: seed)
    var (read, refused) = (0, 0)
    for round in 0..<2000 {
      let document = mutator.mutate(documents[round % documents.count])
      // A slice that does not begin at 0, like the records that the consumer delivers.
      let value = ([0x7B, 0x22] + document)[2...]
      do {
        let again = try reencode(value)
        read += 1
        do {
          if try reencode(again[...]) != again { Issue.record("\(String(decoding: document, as: UTF8.self)) changes") }
        } catch {
          Issue.record("read but not reread, \(error): \(String(decoding: document, as: UTF8.self))")
        }
      } catch {
        refused += 1
        expectSilence(of: error)
      }
    }
    #expect(read > 0 && refused > 0)
  }

  /// Expects an error that the dead-letter topic can describe and that contains nothing of the payload.
  ///
  /// The mark is only in values; an error may repeat only names of fields.
  private func expectSilence(of error: any Error) {
    guard let error = error as? RecordError else {
      Issue.record("not a RecordError: \(type(of: error))")
      return
    }
    #expect(!error.detail.contains(Self.mark), "\(error.detail)")
    #expect(error.detail.utf8.count < 4096)
  }
}
