import FanfareCore
import HTTPTypes

/// By what a request is known across systems.
enum RequestIdentity {
  private enum Subject {}
  /// The caller's `X-Request-Id` if it is a sane token (1 to 128 characters that need no quoting anywhere), else a new
  /// UUID.
  static func requestID(of headers: HTTPFields) -> String {
    if let given = headers[.requestID], isSane(given) { return given }
    return Identities.random(of: Subject.self).description
  }

  /// The caller's W3C `traceparent`; nil when it is absent or malformed, as Trace Context §3.2 demands. Of later
  /// versions only the length that they must at least have is checked.
  static func traceparent(of headers: HTTPFields) -> String? {
    guard let value = headers[.traceparent] else { return nil }
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

  private static func isSane(_ token: String) -> Bool {
    (1...128).contains(token.utf8.count)
      && token.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"),
          UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "/"),
          UInt8(ascii: "+"),
          UInt8(ascii: "="), UInt8(ascii: "@"):
          true
        default: false
        }
      }
  }
}

extension HTTPField.Name {
  // The literals are valid field names, which is all that the initialiser checks.
  /// The id by which caller and server can talk about a request.
  static let requestID = HTTPField.Name("X-Request-Id")!
  /// W3C Trace Context.
  static let traceparent = HTTPField.Name("traceparent")!
  /// The key under which a caller repeats a request safely.
  static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
}
