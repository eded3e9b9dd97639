/// A span's place in a distributed trace, as W3C Trace Context passes it on.
package struct TraceContext: Hashable, Sendable {
  /// The trace's id: 16 bytes, never all zero.
  package let trace: TraceID
  /// The span's id, never zero.
  package let span: UInt64
  /// Whether the caller records the trace.
  package let isSampled: Bool
  /// The tracing systems' own data, a valid `tracestate`, which is passed on unchanged; nil if there is none.
  package let state: String?

  package init(trace: TraceID, span: UInt64, isSampled: Bool = true, state: String? = nil) {
    (self.trace, self.span, self.isSampled, self.state) = (trace, span, isSampled, state)
  }

  /// Reads a `traceparent` of any version; nil if it is malformed (Trace Context §3.2).
  /// Of later versions only the part that is common to all is read. `tracestate` must be valid; see `validState`.
  package init?(traceparent: String, tracestate: String? = nil) {
    let bytes = Array(traceparent.utf8)
    let dash = UInt8(ascii: "-")
    guard bytes.count == 55 || (bytes.count > 55 && bytes[55] == dash), bytes[2] == dash, bytes[35] == dash,
      bytes[52] == dash, let high = Self.number(bytes[3..<19]), let low = Self.number(bytes[19..<35]),
      let span = Self.number(bytes[36..<52]), let flags = Self.number(bytes[53..<55]), high | low != 0, span != 0
    else { return nil }
    self.init(trace: TraceID(high: high, low: low), span: span, isSampled: flags & 1 == 1, state: tracestate)
  }

  /// The context of a span below this one.
  package func child(using generator: inout some RandomNumberGenerator) -> TraceContext {
    TraceContext(trace: trace, span: .random(in: 1 ... .max, using: &generator), isSampled: isSampled, state: state)
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

extension TraceContext {
  /// The most characters of a `tracestate` that is passed on.
  package static let maximumStateLength = 512

  /// Returns the `tracestate` without blanks around it, or nil to drop it whole: it is empty, too long or malformed
  /// (Trace Context §3.3).
  package static func validState(_ text: String) -> String? {
    guard text.utf8.count <= maximumStateLength else { return nil }
    let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    var keys: Set<ArraySlice<UInt8>> = []
    let bytes = Array(text.utf8)
    for member in bytes.split(separator: UInt8(ascii: ",")) {
      // Empty members are permitted.
      guard let start = member.firstIndex(where: { !isBlank($0) }), let end = member.lastIndex(where: { !isBlank($0) })
      else { continue }
      let parts = member[start...end].split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, isStateKey(parts[0]), isStateValue(parts[1]), keys.insert(parts[0]).inserted else {
        return nil
      }
    }
    guard (1...32).contains(keys.count), let start = bytes.firstIndex(where: { !isBlank($0) }),
      let end = bytes.lastIndex(where: { !isBlank($0) })
    else { return nil }
    return String(decoding: bytes[start...end], as: UTF8.self)
  }

  private static func isStateKey(_ key: ArraySlice<UInt8>) -> Bool {
    guard (1...256).contains(key.count), key.first.map(isLowerCaseOrDigit) ?? false else { return false }
    return key.allSatisfy { isLowerCaseOrDigit($0) || "_-*/@".utf8.contains($0) }
  }

  private static func isLowerCaseOrDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  private static func isStateValue(_ value: ArraySlice<UInt8>) -> Bool {
    (1...256).contains(value.count) && value.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }
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
