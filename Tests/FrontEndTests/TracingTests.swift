import FanfareCore
import Foundation
import RDKafka
import Support
import Synchronization
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(1))) struct TracingTests {
  private static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  private final class RecordedSpans: SpanSink {
    private let kept = Mutex<[TraceSpan]>([])

    var all: [TraceSpan] { kept.withLock { $0 } }

    func record(_ spans: [TraceSpan]) { kept.withLock { $0 += spans } }
  }

  private static let send = #"{"to":{"user":"TAG-MARK"},"message":{"body":"BODY-MARK"}}"#

  @Test func recordContinuesTheCallersTraceBelowTheAcceptance() async throws {
    let (spans, sink) = (RecordedSpans(), RecordingSink())
    try await Harness.run({
      $0.sink = sink
      $0.tracing = Tracing(sink: spans, sampleRatio: 0)
    }) { app in
      for _ in 0..<2 {
        let reply = try await app.request(
          .post, "/api/sends", body: Self.send,
          headers: [("traceparent", Self.traceparent), ("tracestate", "a=1,b=2")])
        #expect(reply.status == 202)
      }
      #expect(try sink.sends().map(\.tracestate) == ["a=1,b=2", "a=1,b=2"])
      let contexts = try sink.sends().map { send in
        send.traceparent.flatMap { TraceContext(traceparent: $0, tracestate: send.tracestate) }
      }
      #expect(spans.all.map { Optional($0.context) } == contexts)
      #expect(Set(contexts).count == 2)
      #expect(spans.all.allSatisfy { $0.parent == 0x00f0_67aa_0ba9_02b7 && $0.name == "send accept" })
      #expect(spans.all.allSatisfy { $0.context.trace.description == "4bf92f3577b34da6a3ce929d0e0e4736" })
      #expect(!"\(spans.all)".contains("MARK"))
    }
  }

  /// Without a `traceparent` it has no meaning (Trace Context §3.3.1.1).
  @Test func malformedTracestateIsDropped() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let parent = ("traceparent", Self.traceparent)
      for headers in [
        [parent, ("tracestate", "nonsense")], [("tracestate", "a=1")],
        [("traceparent", "00-x"), ("tracestate", "a=1")],
        [parent, ("tracestate", "a=1, b=2")],
      ] {
        #expect(try await app.request(.post, "/api/sends", body: Self.send, headers: headers).status == 202)
      }
      let sends = try sink.sends()
      #expect(sends.map(\.traceparent) == [Self.traceparent, nil, nil, Self.traceparent])
      #expect(sends.map(\.tracestate) == [nil, nil, nil, "a=1, b=2"])
    }
  }

  @Test func frontEndBeginsATraceForASampledSendOfACallerWithoutOne() async throws {
    let (spans, sink) = (RecordedSpans(), RecordingSink())
    try await Harness.run({
      $0.sink = sink
      $0.tracing = Tracing(sink: spans, sampleRatio: 1)
    }) { app in
      #expect(try await app.request(.post, "/api/sends", body: Self.send).status == 202)
      let unsampled = String(Self.traceparent.dropLast()) + "0"
      let reply = try await app.request(.post, "/api/sends", body: Self.send, headers: [("traceparent", unsampled)])
      #expect(reply.status == 202)
      let batch = try await app.request(
        .post, "/api/sends/batch", body: Self.send + "\n" + Self.send, type: "application/x-ndjson")
      #expect(batch.status == 200)
      #expect(spans.all.count == 3 && spans.all.allSatisfy { $0.parent == nil })
      let sent = try sink.sends().map(\.traceparent)
      #expect(sent.count == 4 && sent[1] == unsampled)
      #expect(Set(sent.compactMap(\.self)).subtracting([unsampled]) == Set(spans.all.map(\.context.traceparent)))
    }
  }

  @Test func refusedSendHasAFailedSpan() async throws {
    let spans = RecordedSpans()
    let sink = RecordingSink(failure: { _ in RDKafkaError(code: .notPersisted, message: "injected") })
    try await Harness.run({
      $0.sink = sink
      $0.tracing = Tracing(sink: spans, sampleRatio: 1)
    }) { app in
      let reply = try await app.request(.post, "/api/sends", body: Self.send)
      #expect(reply.status == 503)
      #expect(spans.all.map { $0.failure ?? "" } == ["notPersisted"])
    }
  }
}
