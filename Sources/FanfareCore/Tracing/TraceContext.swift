/// A span's place in a distributed trace, as W3C Trace Context passes it on.
package struct TraceContext: Hashable, Sendable {
  /// The trace's id: 16 bytes, never all zero.
  package let trace: TraceID
  /// The span's id, never zero.
  package let span: UInt64
  /// Whether the caller records the trace.
  package let isSampled: Bool

  package init(trace: TraceID, span: UInt64, isSampled: Bool = true) {
    (self.trace, self.span, self.isSampled) = (trace, span, isSampled)
  }

  /// Reads a `traceparent` of any version; nil if it is malformed (Trace Context §3.2).
  /// Of later versions only the part that is common to all is read.
  package init?(traceparent: String) {
    let bytes = Array(traceparent.utf8)
    let dash = UInt8(ascii: "-")
    guard bytes.count == 55 || (bytes.count > 55 && bytes[55] == dash), bytes[2] == dash, bytes[35] == dash,
      bytes[52] == dash, let high = Self.number(bytes[3..<19]), let low = Self.number(bytes[19..<35]),
      let span = Self.number(bytes[36..<52]), let flags = Self.number(bytes[53..<55]), high | low != 0, span != 0
    else { return nil }
    self.init(trace: TraceID(high: high, low: low), span: span, isSampled: flags & 1 == 1)
  }

  /// The context of a span below this one.
  package func child(using generator: inout some RandomNumberGenerator) -> TraceContext {
    TraceContext(trace: trace, span: .random(in: 1 ... .max, using: &generator), isSampled: isSampled)
  }

  /// The context as a `traceparent` of version 00, 55 characters.
  package var traceparent: String {
    "00-\(trace)-\(Self.digits(span))-\(isSampled ? "01" : "00")"
  }

  /// The 16 hexadecimal digits of a span's id.
  package static func digits(_ number: UInt64) -> String {
    Hexadecimal.text((0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) })
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
    var number: UInt64 = 0
    for digit in digits {
      guard let value = Hexadecimal.value(of: digit) else { return nil }
      number = number << 4 | UInt64(value)
    }
    return number
  }
}

/// The id of a trace.
package struct TraceID: Hashable, Sendable, CustomStringConvertible {
  package let high: UInt64
  package let low: UInt64

  package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  package static func random(using generator: inout some RandomNumberGenerator) -> TraceID {
    TraceID(high: .random(in: .min ... .max, using: &generator), low: .random(in: 1 ... .max, using: &generator))
  }

  /// 32 hexadecimal digits.
  package var description: String { TraceContext.digits(high) + TraceContext.digits(low) }
}
