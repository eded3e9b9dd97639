import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// The head of an HTTP/1.1 request, and the results of one pass over its header fields.
///
/// Requests that are well-formed but that the server must not or cannot take are refused here:
/// - HTTP/1.1 without exactly one `Host` (RFC 9112 §3.2): 400.
/// - A body whose end can be understood in two ways: 400.
/// - A transfer coding other than `chunked`: 501 (RFC 9112 §6.1).
struct HTTP1Head {
  let head: HTTPRequestHead
  private(set) var fields = KeyFields()
  /// The value of `Host`.
  private(set) var host: String?
  /// Whether the connection closes after the answer. That is usual for HTTP/1.0 (RFC 9112 §9.3).
  private(set) var isLast = false
  /// Whether the client offers another protocol (`Upgrade`, `CONNECT`).
  private(set) var isOffer = false
  /// Whether the client may wait for `100 Continue`.
  private(set) var expectsContinue = false
  /// The value of `Content-Length`.
  private(set) var declaredLength: Int?
  private var isChunked = false

  init(_ head: HTTPRequestHead, requiresHost: Bool = true) throws(RuleViolation) {
    self.head = head
    isLast = !head.isKeepAlive
    isOffer = head.method == .CONNECT
    let isOld = head.version == .http1_0
    var (hosts, lengths, codings) = (0, 0, 0)
    for (name, value) in head.headers {
      // Compared by length first: this runs for every field of every request.
      switch name.utf8.count {
      case 4 where name.isField("host"):
        hosts += 1
        host = value
      // RFC 9110 §10.1.1: the expectation of an HTTP/1.0 client is ignored.
      case 6 where name.isField("expect"): expectsContinue = !isOld && value.lowercased() == "100-continue"
      case 10 where name.isField("connection"): readOptions(value)
      case 14 where name.isField("content-length"):
        lengths += 1
        declaredLength = Int(contentLength: value)
      case 17 where name.isField("transfer-encoding"):
        codings += 1
        isChunked = true
        guard !isOld else { throw refusal(.malformed, "Transfer-Encoding requires HTTP/1.1") }
        guard value.lowercased().filter({ $0 != " " && $0 != "\t" }) == "chunked" else {
          throw refusal(.notImplemented, "the only transfer coding that this server knows is chunked")
        }
      default: fields.add(name, value)
      }
    }
    // RFC 9112 §6.1: another server on the way might see another end of the body.
    guard codings == 0 || lengths == 0, codings <= 1, lengths <= 1 else {
      throw refusal(
        .malformed, "Content-Length or Transfer-Encoding must be given once, and not both")
    }
    guard hosts == 1 || (hosts == 0 && (isOld || !requiresHost)) else {
      throw refusal(.malformed, "Host must be given exactly once")
    }
  }

  /// Reads the options of `Connection`; they are case-insensitive (RFC 9110 §7.6.1).
  private mutating func readOptions(_ value: String) {
    if value.isField("keep-alive") { return }
    for option in value.split(separator: ",") {
      switch option.lowercased().filter({ !$0.isWhitespace }) {
      case "close": isLast = true
      case "upgrade": isOffer = true
      default: break
      }
    }
  }

  private func refusal(_ kind: RequestFault.Kind, _ detail: String) -> RuleViolation {
    RuleViolation(fault: RequestFault(kind, detail), requestID: head.headers.first(name: "X-Request-Id"))
  }

  /// Makes the exchange of the request. Throws for a method that is no token, which the parser does not let pass.
  func exchange(_ body: RequestBody, on connection: ClientConnection, slot: AnswerSlot?) throws -> Exchange {
    let length: BodyLength = isChunked ? .unknown : declaredLength.map { .known($0) } ?? .none
    return Exchange(
      try HTTPRequest.Method(head.method), RequestTarget(try originForm()), authority: host,
      headers: RequestFields(head.headers, key: fields), body: body, length: length, on: connection, slot: slot)
  }

  /// The target without scheme and host.
  private func originForm() throws -> String {
    guard head.uri.utf8.first != UInt8(ascii: "/") else { return head.uri }
    return try HTTPRequest(head, secure: false, splitCookie: false).path ?? "/"
  }
}

/// A request that is refused before it is handed to a route. Nothing after it on the connection is read.
struct RuleViolation: Error {
  let fault: RequestFault
  /// The value of `X-Request-Id`.
  var requestID: String?

  /// Describes an error of the parser.
  init(_ error: HTTPParserError) {
    fault =
      switch error {
      case .headerOverflow: .headersTooLarge
      case .invalidMethod: .unknownMethod
      default: .malformed
      }
  }

  init(fault: RequestFault, requestID: String?) { (self.fault, self.requestID) = (fault, requestID) }
}

extension RequestFault {
  static let headersTooLarge = RequestFault(
    .headersTooLarge, "the request line and header fields are larger than the server accepts")
  static let unknownMethod = RequestFault(.notImplemented, "this server does not know the request's method")
  static let malformed = RequestFault(.malformed, "the request is not well-formed HTTP")
}

extension Int {
  /// The value of a `Content-Length` field, which the parsers have checked. A larger one than an `Int` is the largest.
  init?(contentLength text: String) {
    let digits = text.utf8.filter { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard !digits.isEmpty else { return nil }
    self = Int(String(decoding: digits, as: UTF8.self)) ?? .max
  }
}
