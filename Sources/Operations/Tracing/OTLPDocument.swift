import FanfareCore

/// Spans as an `ExportTraceServiceRequest` of OTLP in its JSON form: ids in hexadecimal, 64-bit numbers as text.
enum OTLPDocument {
  private static let errorStatus = 2

  static func bytes(of spans: [TraceSpan], resource: [(name: String, value: String)]) -> [UInt8] {
    JSONWriter.object(capacity: 256 + 700 * spans.count) { json in
      json.array("resourceSpans", [spans]) { json, spans in
        json.object { json in
          json.object("resource") { json in
            json.array("attributes", resource) { json, attribute in
              write(attribute.name, .text(attribute.value), to: &json)
            }
          }
          json.array("scopeSpans", [spans]) { json, spans in
            json.object { json in
              json.object("scope") { $0.member("name", "fanfare") }
              json.array("spans", spans) { json, span in write(span, to: &json) }
            }
          }
        }
      }
    }
  }

  private static func write(_ span: TraceSpan, to json: inout JSONWriter) {
    json.object { json in
      json.member("traceId", span.context.trace.description)
      json.member("spanId", TraceContext.digits(span.context.span))
      json.member("traceState", ifPresent: span.context.state)
      json.member("parentSpanId", ifPresent: span.parent.map(TraceContext.digits))
      json.member("name", span.name)
      json.member("kind", span.kind.rawValue)
      json.member("startTimeUnixNano", "\(span.start.milliseconds)000000")
      json.member("endTimeUnixNano", "\(span.end.milliseconds)000000")
      json.array("attributes", span.attributes) { json, attribute in
        write(attribute.name, attribute.value, to: &json)
      }
      if let failure = span.failure {
        json.object("status") { json in
          json.member("code", errorStatus)
          json.member("message", failure)
        }
      }
    }
  }

  private static func write(_ name: String, _ value: TraceSpan.Value, to json: inout JSONWriter) {
    json.object { json in
      json.member("key", name)
      json.object("value") { json in
        switch value {
        case .text(let text): json.member("stringValue", text)
        case .number(let number): json.member("intValue", "\(number)")
        }
      }
    }
  }
}
