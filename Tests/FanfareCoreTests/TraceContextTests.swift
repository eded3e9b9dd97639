import FanfareCore
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

  @Test func backendMayGiveTheContextAsCloudEventsExtension() throws {
    func send(_ attribute: String, _ member: String = "") throws -> SendRequest {
      let record =
        #"{"specversion":"1.0","id":"0190F5FE-7C00-7000-8000-000000000001","type":"fanfare.send.v1","source":"/x","#
        + #""traceparent":\#(attribute),"data":{"to":{"user":"bob"},"message":{"body":"x"}\#(member)}}"#
      return try SendRequest.decode(Array(record.utf8)[...], recordTime: UnixTime(milliseconds: 0))
    }
    #expect(try send(#""\#(Self.traceparent)""#).traceparent == Self.traceparent)
    #expect(try send(#""\#(Self.traceparent)""#, #","traceparent":"00-x""#).traceparent == "00-x")
    for malformed in [#""00-x""#, "null", "7", "{}"] { #expect(try send(malformed).traceparent == nil) }
  }
}
