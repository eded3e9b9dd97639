import FanfareCore
import Foundation
import Testing

@Suite struct TraceContextTests {
  private static let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

  @Test func traceparentIsReadAndWritten() throws {
    let context = try #require(TraceContext(traceparent: Self.traceparent))
    #expect(context.trace.description == "0af7651916cd43dd8448eb211c80319c")
    #expect(context.span == 0xb7ad_6b71_6920_3331)
    #expect(context.isSampled)
    #expect(context.traceparent == Self.traceparent)
    #expect(TraceContext(traceparent: String(Self.traceparent.dropLast()) + "0")?.isSampled == false)
    #expect(TraceContext(traceparent: "01" + Self.traceparent.dropFirst(2) + "-more")?.span == context.span)
  }

  @Test(arguments: [
    "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
    "00-00000000000000000000000000000000-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
    "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  ]) func malformedTraceparentIsNoContext(text: String) { #expect(TraceContext(traceparent: text) == nil) }

  private struct Nowhere: SpanSink {
    func record(_ spans: [TraceSpan]) {}
  }

  @Test func callersFlagWinsOverTheRatio() throws {
    var generator = SplitMix64(seed: 1)
    let unsampled = String(Self.traceparent.dropLast()) + "0"
    #expect(
      Tracing(sink: Nowhere(), sampleRatio: 1).begin(traceparent: unsampled, using: &generator) == nil)
    let begun = try #require(
      Tracing(sink: Nowhere(), sampleRatio: 0).begin(traceparent: Self.traceparent, using: &generator))
    #expect(begun.parent == 0xb7ad_6b71_6920_3331)
    #expect(begun.context.trace.description == "0af7651916cd43dd8448eb211c80319c")
    #expect(begun.context.span != begun.parent)
  }

  @Test func ratioDecidesWithoutACaller() {
    var generator = SplitMix64(seed: 1)
    let tracing = Tracing(sink: Nowhere(), sampleRatio: 0.25)
    let traced = (0..<4000).count { _ in tracing.begin(traceparent: nil, using: &generator) != nil }
    #expect((900...1100).contains(traced), "\(traced)")
    #expect(Tracing(sink: Nowhere(), sampleRatio: 0).begin(traceparent: nil, using: &generator) == nil)
    #expect(Tracing(sink: Nowhere(), sampleRatio: 1).begin(traceparent: nil, using: &generator)?.parent == nil)
  }

  /// The attributes of CloudEvents' distributed tracing extension in every record that concerns a send.
  @Test func recordsCarryTheContextAsCloudEventsExtension() throws {
    let time = UnixTime(milliseconds: 0)
    func record(_ state: String?, _ parent: String? = Self.traceparent) -> [(name: String, bytes: [UInt8])] {
      let send = SendRequest(
        id: .random(), acceptedAt: time, audience: .everyone, content: Content(message: Message(body: "x")),
        traceparent: parent, tracestate: state)
      let device = DeviceResult(
        registration: .random(), platform: .apns, outcome: .delivered, reason: "", status: 200, attempts: 1)
      var writer = SendRecordWriter()
      let retry = RetryRecord(send: send, part: 0, parts: 1, attempt: nil, deferrals: 1, devices: [.done(device)])
      let status = StatusRecord(
        send: send.id, hub: .default, state: .settled, sender: nil, audience: .everyone, acceptedAt: time,
        settledAt: time, devices: [], traceparent: parent, tracestate: state)
      return [
        ("send", send.encoded()), ("batch", writer.record(of: send)), ("status", status.encoded()),
        ("retry", retry.encoded(at: time)),
        ("segment", SegmentRecord(send: send, pages: 2, range: 0..<1).encoded(at: time)),
      ]
    }
    for state in ["vendor=1,other=a b", nil] {
      for (name, bytes) in record(state) {
        let event = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
        #expect(event["traceparent"] as? String == Self.traceparent, "\(name)")
        #expect(event["tracestate"] as? String == state, "\(name)")
        let read: (String?, String?) =
          switch name {
          case "status": { ($0.traceparent, $0.tracestate) }(try StatusRecord.decode(bytes[...]))
          case "retry":
            { ($0.send.traceparent, $0.send.tracestate) }(try RetryRecord.decode(bytes[...], recordTime: time))
          case "segment":
            { ($0.send.traceparent, $0.send.tracestate) }(try SegmentRecord.decode(bytes[...], recordTime: time))
          default: { ($0.traceparent, $0.tracestate) }(try SendRequest.decode(bytes[...], recordTime: time))
          }
        #expect(read.0 == Self.traceparent && read.1 == state, "\(name)")
      }
    }
    for (name, bytes) in record(nil, nil) {
      #expect(!String(decoding: bytes, as: UTF8.self).contains("trace"), "\(name)")
    }
  }

  @Test func recordsOfEarlierReleasesHaveTheContextInTheirDataOnly() throws {
    let status =
      #"{"specversion":"1.0","id":"019f0000-0000-7014-8000-000000000000/0","type":"fanfare.status.v1","#
      + #""source":"/fanfare/worker","time":"2026-09-21T14:13:20.124Z","data":{"#
      + #""send":"019f0000-0000-7014-8000-000000000000","hub":"shop","part":0,"state":"settled","to":{"tag":"news"},"#
      + #""acceptedAt":"2026-09-21T14:13:20.123Z","settledAt":"2026-09-21T14:13:20.124Z","devices":[],"#
      + #""traceparent":"\#(Self.traceparent)"}}"#
    #expect(try StatusRecord.decode(Array(status.utf8)[...]).traceparent == Self.traceparent)
  }

  @Test(arguments: [
    "a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "fw529a3039@dt=FfSQaIb2qA, ,x=a b", "a=\"\\",
    (0..<32).map { "k\($0)=\($0)" }.joined(separator: ","), "k=" + String(repeating: "v", count: 256),
  ]) func validTracestateIsPassedOnUnchanged(text: String) {
    #expect(TraceContext.validState(text) == text)
    #expect(TraceContext.validState(" \t\(text) ") == text)
  }

  @Test(arguments: [
    "", " ", ",", "a", "a=", "=1", "A=1", "_a=1", "a=1,a=2", "a=1=2", "a=é", "a=\u{7F}", "é=1", "a=1\nb=2",
    (0..<33).map { "k\($0)=\($0)" }.joined(separator: ","), "k=" + String(repeating: "v", count: 257),
    (0..<4).map { "k\($0)=" + String(repeating: "v", count: 126) }.joined(separator: ","),
  ]) func malformedTracestateIsDropped(text: String) { #expect(TraceContext.validState(text) == nil) }

  @Test func backendMayGiveTheContextAsCloudEventsExtension() throws {
    func send(_ attribute: String, _ member: String = "", _ state: String = "7") throws -> SendRequest {
      let record =
        #"{"specversion":"1.0","id":"0190F5FE-7C00-7000-8000-000000000001","type":"fanfare.send.v1","source":"/x","#
        + #""tracestate":\#(state),"traceparent":\#(attribute),"#
        + #""data":{"to":{"user":"bob"},"message":{"body":"x"}\#(member)}}"#
      return try SendRequest.decode(Array(record.utf8)[...], recordTime: UnixTime(milliseconds: 0))
    }
    #expect(try send(#""\#(Self.traceparent)""#).traceparent == Self.traceparent)
    #expect(try send(#""\#(Self.traceparent)""#, #","traceparent":"00-x""#).traceparent == "00-x")
    for malformed in [#""00-x""#, "null", "7", "{}"] {
      let refused = try send(malformed, "", #""a=1""#)
      #expect(refused.traceparent == nil && refused.tracestate == nil)
    }
    #expect(try send(#""\#(Self.traceparent)""#, "", #""a=1""#).tracestate == "a=1")
    for malformed in [#""a""#, "null", "7", "[]", #""a=1,a=1""#] {
      let kept = try send(#""\#(Self.traceparent)""#, "", malformed)
      #expect(kept.traceparent == Self.traceparent && kept.tracestate == nil)
    }
    // It belongs to the context beside it, not to that of `data`.
    #expect(try send(#""\#(Self.traceparent)""#, #","traceparent":"00-x""#, #""a=1""#).tracestate == nil)
  }
}
