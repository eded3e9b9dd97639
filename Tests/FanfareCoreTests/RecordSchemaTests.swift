import FanfareCore
import Operations
import Testing

/// Checks the records that the codec writes against the AsyncAPI document, which other programs rely on.
@Suite struct RecordSchemaTests {
  private let checker: SchemaChecker

  init() throws {
    checker = try SchemaChecker()
  }

  private func complaints(about record: [UInt8], schema: String) throws -> [String] {
    try checker.complaints(about: record, schema: schema, .closed)
  }

  @Test(arguments: CodecTests.requests)
  func sendsAreAsDocumented(request: SendRequest) throws {
    #expect(try complaints(about: request.encoded(), schema: "SendEvent") == [])
  }

  @Test func statusesAreAsDocumented() throws {
    let device = DeviceResult(
      registration: .random(), platform: .wns, outcome: .failed, reason: "x", status: 500, attempts: 2,
      pushedAt: CodecTests.time, answeredAt: CodecTests.time)
    for parts in [1, 2] {
      let status = StatusRecord(
        send: .random(), hub: .default, parts: parts, attempt: parts > 1 ? .random() : nil, state: .settled,
        sender: "zoë",
        audience: .device(.fcm, handle: "t"), acceptedAt: CodecTests.time, settledAt: CodecTests.time,
        devices: [device],
        traceparent: "00-x", tracestate: "a=1", times: StatusRecordTests.times)
      #expect(try complaints(about: status.encoded(), schema: "StatusEvent") == [])
    }
  }

  @Test func segmentsAndCountsAreAsDocumented() throws {
    let segment = SegmentRecord(send: CodecTests.requests[0], pages: 7, range: 2..<5)
    #expect(try complaints(about: segment.encoded(at: CodecTests.time), schema: "SegmentEvent") == [])
    var counts = OutcomeCounts()
    for platform in Platform.allCases {
      for outcome in DeviceResult.Outcome.allCases { counts.add(3, to: .init(platform, outcome)) }
    }
    let status = StatusRecord(
      send: .random(), hub: .default, part: 2, parts: 7, attempt: .random(), state: .cancelled, sender: nil,
      audience: .tag("news"),
      acceptedAt: CodecTests.time, settledAt: CodecTests.time, devices: [], counts: counts)
    #expect(try complaints(about: status.encoded(), schema: "StatusEvent") == [])
    #expect(try StatusRecord.decode(status.encoded()[...]) == status)
  }

  @Test(arguments: [1, 3]) func retriesAreAsDocumented(parts: Int) throws {
    let record = RetryRecordTests.record(parts: parts)
    let complaints = try complaints(about: record.encoded(at: CodecTests.time), schema: "RetryEvent")
    #expect(complaints == [])
  }

  @Test func deadLettersAreAsDocumented() throws {
    for value in [Array("{}".utf8), [0xFF]] {
      let letter = DeadLetter(
        reason: .tooLarge, detail: "x", origin: .init(topic: "t", partition: 0, offset: 0), at: CodecTests.time,
        key: value,
        value: value)
      #expect(try complaints(about: letter.encoded(), schema: "DeadLetterEvent") == [])
    }
  }

  @Test func pulsesAreAsDocumented() throws {
    let process = Pulse.Process(id: "p1", role: "worker", version: "1", host: "h", pid: 7, startedAt: 1)
    var pulse = Pulse(process: process, time: CodecTests.time)
    pulse.isLast = true
    #expect(try complaints(about: pulse.record(), schema: "PulseEvent") == [])
    pulse.isLast = false
    pulse.problems = [Pulse.Problem(check: "kafka", problem: "no broker answers")]
    pulse.report([
      MetricSample("fanfare_sends_accepted_total", .counter, labels: ["hub": "zoë"], value: 3),
      MetricSample("process_cpu_seconds", .gauge, value: 1.5e-7),
    ])
    pulse.segments = [Pulse.Segments(hub: "default", send: "\(SendID.random())", segments: 2, pagesAhead: 9)]
    #expect(try complaints(about: pulse.record(), schema: "PulseEvent") == [])
    pulse.report(
      (0...Pulse.maximumSamples).map {
        MetricSample("fanfare_sends_accepted_total", .counter, labels: ["hub": "hub-\($0)"], value: 3)
      })
    #expect(pulse.hubs?.count == Pulse.maximumSamples)
    #expect(try complaints(about: pulse.record(), schema: "PulseEvent") == [])
    let long = String(repeating: "x", count: Pulse.maximumRecordSize)
    pulse.report([MetricSample(long, .counter, labels: [:], value: 3)])
    #expect(try complaints(about: pulse.record(), schema: "PulseEvent") == ["the record is too large"])
  }

  /// Kafka's default limit is one megabyte, which is enough for a pulse.
  @Test func documentedTopicsAllowTheLargestRecord() throws {
    #expect(checker.channels.count == 6)
    for (name, channel) in checker.channels where name != "pulse" {
      let kafka = (channel["bindings"] as? [String: Any])?["kafka"] as? [String: Any]
      let configuration = try #require(kafka?["topicConfiguration"] as? [String: Any])
      #expect(configuration["max.message.bytes"] as? Int == StatusRecord.maximumRecordSize, "\(name)")
    }
  }

  @Test func documentContainsEveryEnumValue() throws {
    func words(_ path: String...) -> [String]? {
      var node: Any? = checker.schemas
      for step in path { node = (node as? [String: Any])?[step] }
      return (node as? [Any])?.map { "\($0)" }
    }
    #expect(words("Platform", "enum") == Platform.allCases.map(\.name))
    #expect(words("Status", "properties", "state", "enum") == StatusRecord.State.allCases.map(\.rawValue))
    #expect(words("DeviceResult", "properties", "outcome", "enum") == DeviceResult.Outcome.allCases.map(\.rawValue))
    #expect(words("RetryDevice", "properties", "outcome", "enum") == DeviceResult.Outcome.allCases.map(\.rawValue))
    #expect(
      words("DeadLetterEvent", "properties", "data", "properties", "reason", "enum")
        == DeadLetter.Reason.allCases.map(\.rawValue)
    )
  }

  /// The checker would ignore a keyword that it does not know.
  @Test func documentUsesOnlyCheckedKeywords() {
    func check(_ schema: Any, at path: String) {
      guard let schema = schema as? [String: Any] else { return }
      for (keyword, value) in schema {
        #expect(SchemaChecker.keywords.contains(keyword), "\(path): \(keyword)")
        switch keyword {
        case "properties":
          for (name, member) in value as? [String: Any] ?? [:] { check(member, at: "\(path).\(name)") }
        case "anyOf", "oneOf":
          for alternative in value as? [Any] ?? [] { check(alternative, at: path) }
        case "items", "additionalProperties", "propertyNames": check(value, at: "\(path).\(keyword)")
        default: break
        }
      }
    }
    for (name, schema) in checker.schemas { check(schema, at: name) }
  }

  @Test func checkerFindsBrokenRecord() throws {
    let record = #"{"specversion":"1.0","id":"x","type":"fanfare.send.v1","data":{"to":{"user":1},"ttl":-1,"extra":0}}"#
    let found = try complaints(about: Array(record.utf8), schema: "SendEvent")
    #expect(
      found.sorted()
        == [
          "data.extra is unknown", "data.to.user is no string", "data.ttl is out of range",
          "data fits 0 of the alternatives", "id is no uuid",
        ].sorted())
  }
}
