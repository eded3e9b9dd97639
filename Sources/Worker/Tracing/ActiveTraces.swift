import FanfareCore

/// The spans of traced items that are being worked on. Which items are traced is in the items themselves
/// (`WorkItem.isTraced`), so that others cost one branch.
///
/// An item has a span from its consumption to its settlement, with one child for the first look-up and one for the
/// pushes to each platform. A page of a broadcast has one span without children: it has thousands of pushes.
struct ActiveTraces: Sendable {
  /// The most items that are traced at a time; further ones are not.
  static let maximum = 10_000

  /// The pushes of an item to one platform.
  private struct Pushes {
    let platform: Platform
    let start: UnixTime
    var end: UnixTime
    var attempts = 0
    var status = 0
    var outcomes = OutcomeCounts()
  }

  private struct Trace {
    let parent: TraceContext
    let context: TraceContext
    let start: UnixTime
    let isPage: Bool
    var found: (at: UnixTime, devices: Int)?
    var pushes: [Pushes] = []
  }

  private let isEnabled: Bool
  /// By slot.
  private var traces: [Int: Trace] = [:]

  init(isEnabled: Bool) { self.isEnabled = isEnabled }

  /// The number of traced items.
  var count: Int { traces.count }

  /// Begins the span of an item. Returns false if its send is not sampled.
  mutating func begin(
    _ slot: Int, _ send: SendRequest, isPage: Bool, at now: UnixTime, using generator: inout SplitMix64
  ) -> Bool {
    guard isEnabled, let text = send.traceparent, traces.count < Self.maximum,
      let parent = TraceContext(traceparent: text, tracestate: send.tracestate), parent.isSampled
    else { return false }
    traces[slot] = Trace(
      parent: parent, context: parent.child(using: &generator), start: now, isPage: isPage)
    return true
  }

  /// Notes that the registry has answered.
  mutating func found(_ slot: Int, devices: Int, at now: UnixTime) {
    if traces[slot]?.found == nil { traces[slot]?.found = (now, devices) }
  }

  /// Notes that a push was handed to its service.
  mutating func pushed(_ slot: Int, on platform: Platform, at now: UnixTime) {
    update(slot, platform, at: now) { $0.attempts += 1 }
  }

  /// Notes a device's result.
  mutating func finished(
    _ slot: Int, on platform: Platform, as outcome: DeviceResult.Outcome, status: Int, at now: UnixTime
  ) {
    update(slot, platform, at: now) { pushes in
      pushes.outcomes.add(1, to: .init(platform, outcome))
      pushes.status = status
    }
  }

  private mutating func update(
    _ slot: Int, _ platform: Platform, at now: UnixTime, _ change: (inout Pushes) -> Void
  ) {
    guard var trace = traces[slot] else { return }
    let index =
      trace.pushes.firstIndex { $0.platform == platform }
      ?? {
        trace.pushes.append(Pushes(platform: platform, start: now, end: now))
        return trace.pushes.count - 1
      }()
    trace.pushes[index].end = now
    change(&trace.pushes[index])
    traces[slot] = trace
  }

  /// The context that the item's status record passes on; nil if the item is not traced.
  func traceparent(of slot: Int) -> String? { traces[slot]?.context.traceparent }

  /// Ends the item's span. Returns it and its children, or nothing if the item is not traced.
  ///
  /// `state`: how the item ended, a constant word.
  mutating func end(
    _ slot: Int, of send: SendRequest, as state: String, topic: String, at now: UnixTime,
    using generator: inout SplitMix64
  ) -> [TraceSpan] {
    guard let trace = traces.removeValue(forKey: slot) else { return [] }
    var attributes = TraceSpan.messaging("process", topic: topic, send: send.id, hub: send.hub)
    attributes.append(("fanfare.state", .text(state)))
    if trace.isPage {
      for pushes in trace.pushes { attributes += Self.counts(pushes, prefix: "fanfare.\(pushes.platform.name)") }
    }
    var spans = [
      TraceSpan(
        trace.isPage ? "page dispatch" : "send dispatch", .consumer, trace.context, parent: trace.parent.span,
        from: trace.start, to: now, attributes: attributes)
    ]
    guard !trace.isPage else { return spans }
    if let found = trace.found {
      spans.append(
        TraceSpan(
          "registry look-up", .internal, trace.context.child(using: &generator), parent: trace.context.span,
          from: trace.start, to: found.at, attributes: [("fanfare.devices", .number(found.devices))]))
    }
    for pushes in trace.pushes where pushes.attempts > 0 {
      var attributes: [(name: String, value: TraceSpan.Value)] = [
        ("http.request.method", .text("POST")), ("fanfare.platform", .text(pushes.platform.name)),
        ("fanfare.attempts", .number(pushes.attempts)),
      ]
      if pushes.status > 0 { attributes.append(("http.response.status_code", .number(pushes.status))) }
      attributes += Self.counts(pushes, prefix: "fanfare")
      let delivered = pushes.outcomes[pushes.platform, .delivered]
      spans.append(
        TraceSpan(
          "push", .client, trace.context.child(using: &generator), parent: trace.context.span, from: pushes.start,
          to: pushes.end, attributes: attributes,
          failure: delivered == 0 && pushes.outcomes.total > 0 ? "undelivered" : nil))
    }
    return spans
  }

  /// Forgets an item that is done or given up.
  mutating func forget(_ slot: Int) { traces[slot] = nil }

  private static func counts(_ pushes: Pushes, prefix: String) -> [(name: String, value: TraceSpan.Value)] {
    pushes.outcomes.entries.map { ("\(prefix).\($0.kind.outcome.rawValue)", .number($0.count)) }
  }
}
