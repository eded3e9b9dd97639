import HTTP2
import HTTPTypes
import NIOCore

/// The head of an HTTP/1.1 request, and the results of one pass over its header fields.
///
/// Requests that are well-formed but that the server must not or cannot take are refused here:
/// - HTTP/1.1 without exactly one `Host` (RFC 9112 §3.2): 400.
/// - A body whose end can be understood in two ways: 400.
/// - A transfer coding other than `chunked`: 501 (RFC 9112 §6.1).
struct HTTP1Head {
  let method: HTTPRequest.Method
  /// Path and query.
  let target: String
  /// Whether the client speaks HTTP/1.0.
  let isOld: Bool
  /// Whether the connection closes after the answer. That is usual for HTTP/1.0 (RFC 9112 §9.3).
  private(set) var isLast = false
  /// Whether the client offers another protocol (`Upgrade`, `CONNECT`).
  private(set) var isOffer: Bool
  /// Whether the client may wait for `100 Continue`.
  private(set) var expectsContinue = false
  /// The value of `Content-Length`. A larger one than an `Int` is the largest.
  private(set) var declaredLength: Int?
  private(set) var isChunked = false
  private var keepsAlive = false
  private var fault: RequestFault?
  private var lines = ByteBuffer()
  private var key = KeyFields()

  init(method: HTTPRequest.Method, target: String, isOld: Bool) {
    (self.method, self.target, self.isOld, isOffer) = (method, target, isOld, method == .connect)
  }

  var fields: RequestFields { RequestFields(lines: lines, key: key) }

  /// Notes a field, whose value is at a place of the lines.
  mutating func note(_ name: Span<UInt8>, _ value: Span<UInt8>, at place: KeyFields.Place) {
    // Compared by length first: this runs for every field of every request.
    switch name.count {
    // RFC 9110 §10.1.1: the expectation of an HTTP/1.0 client is ignored.
    case 6 where name.isField("expect"): expectsContinue = !isOld && value.isField("100-continue")
    case 10 where name.isField("connection"): noteOptions(value)
    case 14 where name.isField("content-length"):
      // RFC 9112 §6.1: another server on the way might see another end of the body.
      guard let length = Int(contentLength: value), declaredLength == nil, !isChunked else { return refuse(.malformed) }
      declaredLength = length
    case 17 where name.isField("transfer-encoding"):
      guard declaredLength == nil, !isChunked else { return refuse(.malformed) }
      isChunked = true
      if isOld { refuse(RequestFault(.malformed, "Transfer-Encoding requires HTTP/1.1")) }
      if !value.isField("chunked") {
        refuse(RequestFault(.notImplemented, "the only transfer coding that this server knows is chunked"))
      }
    default: key.note(name, at: place)
    }
  }

  /// Notes the options of `Connection`; they are case-insensitive (RFC 9110 §7.6.1).
  private mutating func noteOptions(_ value: Span<UInt8>) {
    if value.isField("keep-alive") { return keepsAlive = true }
    for option in String(copying: value).split(separator: ",") {
      switch option.lowercased().filter({ !$0.isWhitespace }) {
      case "close": isLast = true
      case "keep-alive": keepsAlive = true
      case "upgrade": isOffer = true
      default: break
      }
    }
  }

  /// Notes why the request is refused; the first reason counts.
  private mutating func refuse(_ fault: RequestFault) { self.fault = self.fault ?? fault }

  /// Takes the lines of all fields. Throws if the request is refused.
  mutating func end(lines: ByteBuffer, requiresHost: Bool) throws(RuleViolation) {
    self.lines = lines
    if isOld, !keepsAlive { isLast = true }
    if key.hosts != 1, key.hosts > 1 || (!isOld && requiresHost) {
      refuse(RequestFault(.malformed, "Host must be given exactly once"))
    }
    if let fault { throw RuleViolation(fault: fault, requestID: fields.requestID) }
  }

  /// Makes the exchange of the request.
  func exchange(_ body: RequestBody, on connection: ClientConnection, slot: AnswerSlot?) -> Exchange {
    let length: BodyLength = isChunked ? .unknown : declaredLength.map { .known($0) } ?? .none
    return Exchange(
      method, RequestTarget(target), headers: fields, body: body, length: length, on: connection, slot: slot)
  }
}

extension HTTP1Head {
  /// The methods that the server knows: those of IANA's registry, and a few of earlier protocols.
  private static let methods: Set<String> = [
    "DELETE", "GET", "HEAD", "POST", "PUT", "CONNECT", "OPTIONS", "TRACE", "COPY", "LOCK", "MKCOL", "MOVE", "PROPFIND",
    "PROPPATCH", "SEARCH", "UNLOCK", "BIND", "REBIND", "UNBIND", "ACL", "REPORT", "MKACTIVITY", "CHECKOUT", "MERGE",
    "M-SEARCH", "NOTIFY", "SUBSCRIBE", "UNSUBSCRIBE", "PATCH", "PURGE", "MKCALENDAR", "LINK", "UNLINK", "SOURCE",
    "QUERY",
  ]
  static let longestMethod = 11

  /// The method of this name; nil if the server does not know it.
  static func method(_ name: Span<UInt8>) -> HTTPRequest.Method? {
    if name.isEqual(to: "POST".utf8.span) { return .post }
    let name = String(copying: name)
    return methods.contains(name) ? HTTPRequest.Method(name) : nil
  }

  /// The target without scheme and host; nil if it has none of the forms of RFC 9112 §3.2.
  static func originForm(_ target: String, _ method: HTTPRequest.Method) -> String? {
    if target.utf8.first == UInt8(ascii: "/") || target.utf8.first == UInt8(ascii: "*") || method == .connect {
      return target
    }
    let scheme = target.utf8.prefix { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
    let rest = target.utf8[scheme.endIndex...]
    guard !scheme.isEmpty, rest.starts(with: "://".utf8) else { return nil }
    let authority = rest.dropFirst(3).prefix { !"/?#".utf8.contains($0) }
    guard !authority.isEmpty else { return nil }
    let path = String(target[authority.endIndex...])
    return path.utf8.first == UInt8(ascii: "/") ? path : "/" + path
  }
}

extension Int {
  /// The value of a `Content-Length` field; nil if it is no number of 64 bits. A larger one than an `Int` is the
  /// largest.
  init?(contentLength text: Span<UInt8>) {
    var value: UInt64 = 0
    guard text.count > 0 else { return nil }
    for index in text.indices {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[index]) else { return nil }
      let (product, overflows) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflowsToo) = product.addingReportingOverflow(UInt64(text[index] & 0x0F))
      guard !overflows, !overflowsToo else { return nil }
      value = sum
    }
    self.init(clamping: value)
  }
}
