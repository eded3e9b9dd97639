import FanfareCore
import HTTPTypes
import Synchronization

/// The identifiers of a request that other systems know.
enum RequestIdentity {
  private enum Subject {}

  /// Returns the value of `X-Request-Id` if it is valid, else a new UUID. Valid ids have 1 to 128 characters that need
  /// no quoting.
  static func requestID(given: String?) -> String {
    if let given, isPlain(given) { return given }
    return Identities.random(of: Subject.self).description
  }

  /// Returns the value of W3C's `traceparent`, or nil if it is missing or malformed (Trace Context §3.2).
  /// Of later versions only the part that is common to all is checked.
  static func traceparent(given value: String?) -> String? {
    guard let value else { return nil }
    let bytes = Array(value.utf8)
    guard bytes.count == 55 || (bytes.count > 55 && bytes.count <= 128 && bytes[55] == UInt8(ascii: "-")) else {
      return nil
    }
    for (index, byte) in bytes.prefix(55).enumerated() {
      switch index {
      case 2, 35, 52: guard byte == UInt8(ascii: "-") else { return nil }
      default: guard Hexadecimal.value(of: byte) != nil, !(0x41...0x46).contains(byte) else { return nil }
      }
    }
    let zero = UInt8(ascii: "0")
    let version = bytes[0..<2]
    guard !version.elementsEqual("ff".utf8), !(version.elementsEqual("00".utf8) && bytes.count > 55),
      !bytes[3..<35].allSatisfy({ $0 == zero }), !bytes[36..<52].allSatisfy({ $0 == zero }),
      bytes.dropFirst(55).allSatisfy({ $0 > 0x20 && $0 < 0x7F })
    else { return nil }
    return value
  }

  private static func isPlain(_ token: String) -> Bool {
    (1...128).contains(token.utf8.count)
      && token.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
          UInt8(ascii: ":"), UInt8(ascii: "/"), UInt8(ascii: "+"), UInt8(ascii: "="), UInt8(ascii: "@"):
          true
        default: false
        }
      }
  }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; this literal is valid.
  static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
}

/// Makes ids for requests and sends.
///
/// The ids must be unique but need not be unpredictable: knowing one grants no access. So only the seed comes from the
/// system's generator, which costs a system call per number.
enum Identities {
  private static let generator = Mutex(SplitMix64(seed: .random(in: .min ... .max)))

  /// Returns a random id (UUID version 4).
  static func random<Subject>(of subject: Subject.Type) -> Identifier<Subject> {
    generator.withLock { .random(using: &$0) }
  }

  /// Begins the span of a send's acceptance below the caller's; nil if the send is not traced.
  static func trace(of origin: SendOrigin, by tracing: Tracing) -> AcceptTrace? {
    generator.withLock { generator in
      tracing.begin(traceparent: origin.traceparent, tracestate: origin.tracestate, using: &generator)
        .map { AcceptTrace(context: $0.context, parent: $0.parent) }
    }
  }

  /// Returns the id of a send that is accepted now (UUID version 7).
  static func send(at now: UnixTime) -> SendID { generator.withLock { .timeOrdered(at: now, using: &$0) } }
}
