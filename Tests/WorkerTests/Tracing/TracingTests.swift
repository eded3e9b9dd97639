import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

@Suite struct TracingTests {
  private static let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
  private static let caller: UInt64 = 0xb7ad_6b71_6920_3331

  private static func send(_ desk: Desk, to audience: Audience, _ traceparent: String?) -> SendRequest {
    SendRequest(
      id: .random(), sender: "USER-MARK", acceptedAt: desk.wall, audience: audience,
      content: Content(message: Message(body: "BODY-MARK")), traceparent: traceparent,
      tracestate: traceparent == nil ? nil : "vendor=1")
  }

  @Test func sampledSendHasOneTraceWithLookUpAndPushes() throws {
    var desk = Desk(isTracing: true)
    desk.register("TAG-MARK", .apns, .apns, .fcm)
    desk.deliver(Self.send(desk, to: .user("TAG-MARK"), Self.traceparent))
    desk.wall = desk.wall + .milliseconds(40)
    desk.answer(desk.pushes[0], PushOutcome(.accepted, status: 200))
    desk.answer(desk.pushes[1], PushOutcome(.rejected, reason: "PayloadTooLarge", status: 413))
    #expect(desk.spans.isEmpty)
    desk.answer(desk.pushes[2], PushOutcome(.accepted, status: 200))
    #expect(desk.spans.map(\.name) == ["send dispatch", "registry look-up", "push", "push"])
    let dispatch = try #require(desk.spans.first)
    #expect(dispatch.parent == Self.caller)
    #expect(dispatch.end - dispatch.start == .milliseconds(40))
    #expect(desk.spans.dropFirst().allSatisfy { $0.parent == dispatch.context.span })
    #expect(desk.spans.allSatisfy { $0.context.trace.description == "0af7651916cd43dd8448eb211c80319c" })
    #expect(Set(desk.spans.map(\.context.span)).count == 4)
    let pushes = desk.spans.dropFirst(2).map { span in
      Dictionary(span.attributes.map { ($0.name, $0.value) }) { first, _ in first }
    }
    let apns = try #require(pushes.first { $0["fanfare.platform"] == .text("apns") })
    #expect(apns["fanfare.attempts"] == .number(2))
    #expect(apns["fanfare.delivered"] == .number(1) && apns["fanfare.rejected"] == .number(1))
    #expect(!"\(desk.spans)".contains("MARK"))
    // The ledger's span belongs below the worker's.
    #expect(desk.statuses.map(\.traceparent) == [dispatch.context.traceparent])
    #expect(desk.statuses.map(\.tracestate) == ["vendor=1"])
    #expect(desk.spans.allSatisfy { $0.context.state == "vendor=1" })
    #expect(desk.openTraces == 0)
  }

  @Test(arguments: [
    nil, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "00-xyz",
  ]) func unsampledSendHasNoSpansAndPassesItsContextOn(traceparent: String?) {
    var desk = Desk(isTracing: true)
    desk.register("bob", .fcm)
    desk.deliver(Self.send(desk, to: .user("bob"), traceparent))
    desk.answerAll()
    #expect(desk.spans.isEmpty)
    #expect(desk.statuses.map(\.traceparent) == [traceparent])
    // Dropped with a malformed `traceparent`.
    #expect(desk.statuses.map(\.tracestate) == [traceparent?.hasSuffix("-00") == true ? "vendor=1" : nil])
  }

  @Test func workerWithoutTracingPassesTheContextOn() {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.deliver(Self.send(desk, to: .user("bob"), Self.traceparent))
    desk.answerAll()
    #expect(desk.spans.isEmpty)
    #expect(desk.statuses.map(\.traceparent) == [Self.traceparent])
  }

  @Test func deferredPartContinuesTheTraceWhenItComesBack() throws {
    var desk = Desk(retryDelays: [5, 300], isTracing: true)
    desk.register("bob", .fcm)
    desk.deliver(Self.send(desk, to: .user("bob"), Self.traceparent))
    desk.answer(desk.pushes[0], PushOutcome(.retryLater, reason: "QUOTA", status: 429, retryAfter: .seconds(250)))
    let retry = try #require(desk.retries.first)
    #expect(desk.spans.first?.attributes.last.map { $0.value } == .text("deferred"))
    let before = desk.spans.count
    desk.advance(.seconds(260))
    desk.deliver([retry.value])
    desk.answerAll(from: 1)
    let again = try #require(desk.spans.dropFirst(before).first { $0.name == "send dispatch" })
    #expect(again.parent == Self.caller)
    #expect(desk.statuses.map(\.tracestate) == ["vendor=1"])
    #expect(desk.statuses.map(\.traceparent) == [again.context.traceparent])
    #expect(desk.openTraces == 0)
  }

  @Test func broadcastHasOneSpanForEachPage() throws {
    var desk = BroadcastTests.desk(devices: 100, isTracing: true)
    desk.deliver(Self.send(desk, to: .tag("news"), Self.traceparent))
    BroadcastTests.begin(&desk)
    BroadcastTests.answerAll(&desk)
    #expect(desk.statuses.count > 3)
    #expect(desk.spans.count == desk.statuses.count)
    #expect(desk.spans.allSatisfy { $0.name == "page dispatch" && $0.parent == Self.caller })
    #expect(Set(desk.statuses.compactMap(\.traceparent)) == Set(desk.spans.map(\.context.traceparent)))
    #expect(desk.openTraces == 0)
  }

  @Test func lostPartitionLeavesNoTraceOpen() {
    var desk = Desk(isTracing: true)
    desk.register("bob", .fcm)
    desk.deliver(Self.send(desk, to: .user("bob"), Self.traceparent))
    #expect(desk.openTraces == 1)
    desk.lose()
    #expect(desk.openTraces == 0)
    #expect(desk.spans.isEmpty)
  }
}
