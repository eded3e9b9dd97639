import Foundation
import Support
import Testing

@testable import fanfare_dev

/// The trace of a send through the processes of a deployment, as a collector sees it.
@Suite(.timeLimit(.minutes(3))) struct TraceTests {
  @Test func sendIsOneTraceAcrossFrontEndWorkerAndLedger() async throws {
    let collector = try await TestCollector()
    let settings = [
      "FANFARE_TRACING_ENDPOINT": collector.endpoint.replacing("/v1/traces", with: ""),
      "FANFARE_TRACING_SAMPLE_RATIO": "0",
    ]
    try await Deployment.with(settings) { deployment in
      let worker = try deployment.startWorker()
      let api = try await deployment.startFrontEnd()
      let token = String(repeating: "a1", count: 32)
      let device = #"{"platform":"ios","instId":"phone","deviceToken":"\#(token)"}"#
      #expect(try await api.call("POST", "/api/register", user: "bob", body: device).status == 200)
      _ = try await deployment.ready(worker)
      let body = #"{"to":{"user":"bob"},"message":{"body":"traced"}}"#
      let caller = (trace: "4bf92f3577b34da6a3ce929d0e0e4736", span: "00f067aa0ba902b7")
      let answer = try await api.call(
        "POST", "/api/sends", user: "sender", body: body,
        headers: [("traceparent", "00-\(caller.trace)-\(caller.span)-01")])
      let id = try #require(try answer.json["id"] as? String)
      // Not sampled: it must not appear.
      #expect(try await api.call("POST", "/api/sends", user: "sender", body: body).status == 202)
      let report = try await deployment.settled(id, as: "sender", at: api)
      let timeline = try #require(report["timeline"] as? [[String: Any]])
      let stages = ["accepted", "consumed", "lookedUp", "pushed", "answered", "settled"]
      #expect(timeline.map { $0["event"] as? String } == stages)
      #expect(timeline.map { $0["platform"] as? String } == [nil, nil, nil, "apns", "apns", nil])
      try await eventually("the ledger's span to arrive") { collector.spans.contains { $0.name == "send settle" } }
      try await eventually("all spans to arrive") { collector.spans.count >= 5 }

      let spans = Dictionary(grouping: collector.spans, by: \.name)
      let accept = try #require(spans["send accept"]?.first)
      let dispatch = try #require(spans["send dispatch"]?.first)
      let push = try #require(spans["push"]?.first)
      let lookUp = try #require(spans["registry look-up"]?.first)
      let settle = try #require(spans["send settle"]?.first)
      #expect(accept.parent == caller.span && dispatch.parent == accept.id && settle.parent == dispatch.id)
      #expect(push.parent == dispatch.id && lookUp.parent == dispatch.id)
      #expect([accept, dispatch, settle].map(\.service) == ["fanfare-api", "fanfare-worker", "fanfare-ledger"])
      #expect(collector.spans.count == 5)
      #expect(collector.spans.allSatisfy { $0.trace == caller.trace })
      #expect(Set(collector.spans.map(\.id)).count == 5)
      for span in [accept, dispatch, settle] {
        #expect(span.attributes["messaging.message.id"] == id && span.attributes["messaging.system"] == "kafka")
      }
      #expect(push.attributes["http.response.status_code"] == "200" && push.attributes["fanfare.delivered"] == "1")
    }
    try await collector.close()
  }
}
