import FanfareCore
import Testing

/// Records of the status topic.
@Suite struct StatusRecordTests {
  private static let time = CodecTests.time
  static let times = SendTimes(
    consumed: time + .milliseconds(3), lookedUp: time + .milliseconds(5), pushed: time + .milliseconds(6),
    answered: time + .milliseconds(90))

  private func status(
    _ state: StatusRecord.State = .noTarget, part: Int = 0, parts: Int = 1, span: Int = 1, attempt: DispatchID? = nil,
    audience: Audience = .user("bob"), devices: [DeviceResult] = []
  ) -> StatusRecord {
    StatusRecord(
      send: .random(), hub: .default, part: part, parts: parts, span: span, attempt: attempt, state: state, sender: nil,
      audience: audience, acceptedAt: Self.time, settledAt: Self.time, devices: devices, counts: OutcomeCounts(devices))
  }

  @Test func statusIsDecodedAsEncoded() throws {
    for state in StatusRecord.State.allCases {
      let devices = DeviceResult.Outcome.allCases.map { outcome in
        DeviceResult(
          registration: .random(), platform: .fcm, outcome: outcome,
          reason: outcome == .delivered ? "" : "UNREGISTERED",
          status: outcome == .unconfirmed ? 0 : 404, attempts: 3,
          pushedAt: outcome == .expired ? nil : Self.times.pushed,
          answeredAt: outcome == .delivered ? Self.times.answered : nil)
      }
      let status = StatusRecord(
        send: .random(), hub: .default, part: state == .settled ? 7 : 0, parts: state == .settled ? 9 : 1,
        attempt: state == .settled ? .random() : nil, state: state,
        sender: state == .settled ? CodecTests.hostile : nil,
        audience: .user("bob"),
        acceptedAt: Self.time, settledAt: Self.time + .seconds(1), devices: state == .settled ? devices : [],
        times: state == .settled ? Self.times : SendTimes())
      #expect(try StatusRecord.decode(status.encoded()[...]) == status)
    }
  }

  @Test func timesTogetherAreTheFirstOfEachStageAndTheLastAnswer() {
    var sum = SendTimes(consumed: Self.time + .seconds(1), answered: Self.time)
    sum.add(Self.times)
    #expect(sum == Self.times)
    sum.add(SendTimes())
    #expect(sum == Self.times)
    sum.add(SendTimes(lookedUp: Self.time, pushed: Self.time, answered: Self.time + .seconds(5)))
    #expect(sum.consumed == Self.times.consumed && sum.lookedUp == Self.time && sum.pushed == Self.time)
    #expect(sum.answered == Self.time + .seconds(5))
  }

  @Test func statusInOnePartOmitsParts() throws {
    let status = status()
    let text = String(decoding: status.encoded(), as: UTF8.self)
    #expect(text.hasPrefix(#"{"specversion":"1.0","id":"\#(status.send)/0","#))
    #expect(!text.contains("parts") && !text.contains("attempt"))
    #expect(try StatusRecord.decode(status.encoded()[...]).parts == 1)
  }

  /// Parts of different attempts are different records with different ids.
  @Test func statusInPartsContainsItsAttempt() {
    let attempt = DispatchID.random()
    let status = status(.settled, part: 1, parts: 3, attempt: attempt)
    let text = String(decoding: status.encoded(), as: UTF8.self)
    #expect(text.hasPrefix(#"{"specversion":"1.0","id":"\#(status.send)/\#(attempt)/1","#))
    #expect(text.contains(#""part":1,"parts":3,"attempt":"\#(attempt)","#))
  }

  @Test(arguments: [
    (#""part":-1"#, "data.part must be 0 to 0"), (#""part":1"#, "data.part must be 0 to 0"),
    (#""part":3,"parts":3"#, "data.part must be 0 to 2"), (#""part":0,"parts":0"#, "data.parts must be 1 to 10000000"),
    (#""part":0,"parts":10000001"#, "data.parts must be 1 to 10000000"),
    (#""part":0,"parts":2,"attempt":"x""#, "data.attempt must be a UUID"),
  ])
  func invalidPartIsRejected(part: String, detail: String) {
    let status = status()
    let record = String(decoding: status.encoded(), as: UTF8.self).replacing(#""part":0"#, with: part)
    #expect(throws: RecordError(.undecodable, detail)) { try StatusRecord.decode(Array(record.utf8)[...]) }
  }

  /// One device's send has no pages; such a record would only make readers count.
  @Test(arguments: [
    (Audience.registration(.random()), 0, 2, false), (.device(.fcm, handle: "t"), 0, 2, false),
    (.everyone, 0, 5, true), (.everyone, 1, 5, false), (.user("bob"), 0, 5, true),
  ])
  func spanIsWithinThePagesOfABroadcast(audience: Audience, part: Int, span: Int, isRead: Bool) {
    let status = status(.cancelled, part: part, parts: 5, span: span, attempt: .random(), audience: audience)
    #expect(((try? StatusRecord.decode(status.encoded()[...])) == status) == isRead)
  }

  /// If a member is repeated the last one counts, also for lists and counts.
  @Test func repeatedDevicesAndCountsAreReplacedByTheLast() throws {
    let devices = [DeviceResult.Outcome.delivered, .failed].map {
      DeviceResult(registration: .random(), platform: .fcm, outcome: $0, reason: "", status: 0, attempts: 1)
    }
    let status = status(.settled, devices: devices)
    let record = String(decoding: status.encoded(), as: UTF8.self)
    let twice = record.replacing(#""devices":["#, with: #""devices":[],"devices":["#)
      .replacing(#""fcm":{"#, with: #""fcm":{"rejected":7},"fcm":{"delivered":7,"#)
    #expect(twice.utf8.count > record.utf8.count + 40)
    #expect(try StatusRecord.decode(Array(twice.utf8)[...]) == status)
    let list = try #require(record.firstMatch(of: /"devices":\[.*?\]/)).output
    #expect(try StatusRecord.decode(Array(record.replacing(list, with: "\(list),\(list)").utf8)[...]) == status)
  }

  /// Windows programs write one before the text.
  @Test func byteOrderMarkIsIgnoredAtTheStart() throws {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let status = status()
    #expect(try StatusRecord.decode((mark + status.encoded())[...]) == status)
    for document in [mark + mark + Array("{}".utf8), Array(" ".utf8) + mark + Array("{}".utf8), mark] {
      #expect(throws: JSONError.self) {
        var reader = try JSONReader(document[...])
        try reader.skipValue()
      }
    }
    var reader = try JSONReader((mark + Array("[\"\u{FEFF}a\"]".utf8))[...])
    var texts: [String] = []
    try reader.readArray { (reader) throws(JSONError) in texts.append(try reader.readString()) }
    #expect(texts.map { Array($0.utf8) } == [mark + Array("a".utf8)])
  }
}
