/// One finished step of a send's way, as OpenTelemetry describes it.
///
/// Never contains a user, a tag, a handle or a payload.
package struct TraceSpan: Sendable, Hashable {
  /// The part in a conversation; the raw values are OTLP's.
  package enum Kind: Int, Sendable {
    case `internal` = 1
    case client = 3
    case producer = 4
    case consumer = 5
  }

  package enum Value: Sendable, Hashable {
    case text(String)
    case number(Int)
  }

  /// Constant text: `send accept`, `send dispatch`, `send settle`, …
  package let name: String
  package let kind: Kind
  package let context: TraceContext
  /// The id of the span above it; nil for the first of a trace.
  package let parent: UInt64?
  package let start: UnixTime
  /// Not before `start`.
  package let end: UnixTime
  /// In a fixed order; the names follow OpenTelemetry's semantic conventions where there is one.
  package let attributes: [(name: String, value: Value)]
  /// Why it failed, a word without data; nil if it did not.
  package let failure: String?

  package init(
    _ name: String, _ kind: Kind, _ context: TraceContext, parent: UInt64?, from start: UnixTime, to end: UnixTime,
    attributes: [(name: String, value: Value)] = [], failure: String? = nil
  ) {
    (self.name, self.kind, self.context, self.parent) = (name, kind, context, parent)
    (self.start, self.end, self.attributes, self.failure) = (start, max(start, end), attributes, failure)
  }

  /// The attributes of a step that reads from or writes to a topic.
  package static func messaging(_ operation: String, topic: String, send: SendID, hub: HubName) -> [(
    name: String, value: Value
  )] {
    [
      ("messaging.system", .text("kafka")), ("messaging.operation.name", .text(operation)),
      ("messaging.operation.type", .text(operation)), ("messaging.destination.name", .text(topic)),
      ("messaging.message.id", .text("\(send)")), ("fanfare.hub", .text(hub.rawValue)),
    ]
  }

  package static func == (left: Self, right: Self) -> Bool { left.context == right.context && left.name == right.name }

  package func hash(into hasher: inout Hasher) { hasher.combine(context) }
}

/// Takes finished spans. Called by the stages of a send for sampled sends only.
package protocol SpanSink: Sendable {
  /// Takes spans, or drops them where there is no room. Must not block; callable from any thread.
  func record(_ spans: [TraceSpan])
}

/// Decides which sends are traced, and takes their spans.
package struct Tracing: Sendable {
  package let sink: any SpanSink
  /// The share of sends without a caller's decision that are traced, 0 to 1.
  package let sampleRatio: Double

  package init(sink: any SpanSink, sampleRatio: Double) { (self.sink, self.sampleRatio) = (sink, sampleRatio) }

  /// The context and parent of the first span of a send; nil if it is not traced.
  ///
  /// The sampled flag of a caller's `traceparent` decides. Without one the ratio does.
  package func begin(
    traceparent: String?, tracestate: String? = nil, using generator: inout some RandomNumberGenerator
  ) -> (context: TraceContext, parent: UInt64?)? {
    if let caller = traceparent.flatMap({ TraceContext(traceparent: $0, tracestate: tracestate) }) {
      return caller.isSampled ? (caller.child(using: &generator), caller.span) : nil
    }
    guard sampleRatio > 0, Double.random(in: 0..<1, using: &generator) < sampleRatio else { return nil }
    return (
      TraceContext(trace: .random(using: &generator), span: .random(in: 1 ... .max, using: &generator)), nil
    )
  }
}
