import HTTPTypes
import NIOCore
import NIOHTTP1

/// The head of an HTTP/1.1 request, and the results of one pass over its header fields.
///
/// Requests that are well-formed but that the server must not or cannot take are refused here:
/// - HTTP/1.1 without exactly one `Host` (RFC 9112 §3.2): 400.
/// - A body whose end can be understood in two ways: 400.
/// - A transfer coding other than `chunked`: 501 (RFC 9112 §6.1).
struct HTTP1Head {
  let head: HTTPRequestHead
  private(set) var fields = RequestFields()
  /// Whether the connection closes after the answer. That is usual for HTTP/1.0 (RFC 9112 §9.3).
  private(set) var isLast = false
  /// Whether the client offers another protocol (`Upgrade`, `CONNECT`).
  private(set) var isOffer = false
  /// Whether the client may wait for `100 Continue`.
  private(set) var expectsContinue = false
  /// The value of `Content-Length`.
  private(set) var declaredLength: Int?

  init(_ head: HTTPRequestHead) throws(RuleViolation) {
    self.head = head
    isLast = !head.isKeepAlive
    isOffer = head.method == .CONNECT
    let isOld = head.version == .http1_0
    var (hosts, lengths, codings) = (0, 0, 0)
    for (name, value) in head.headers {
      // Compared by length first: this runs for every field of every request.
      switch name.utf8.count {
      case 4 where name.isField("host"): hosts += 1
      // RFC 9110 §10.1.1: the expectation of an HTTP/1.0 client is ignored.
      case 6 where name.isField("expect"): expectsContinue = !isOld && value.lowercased() == "100-continue"
      case 10 where name.isField("connection"): readOptions(value)
      case 14 where name.isField("content-length"):
        lengths += 1
        declaredLength = Int(contentLength: value)
      case 17 where name.isField("transfer-encoding"):
        codings += 1
        guard !isOld else { throw refusal(.malformedRequest, "Transfer-Encoding requires HTTP/1.1") }
        guard value.lowercased().filter({ $0 != " " && $0 != "\t" }) == "chunked" else {
          throw refusal(.notImplemented, "the only transfer coding that this server knows is chunked")
        }
      default: fields.add(name, value)
      }
    }
    // RFC 9112 §6.1: another server on the way might see another end of the body.
    guard codings == 0 || lengths == 0, codings <= 1, lengths <= 1 else {
      throw refusal(
        .malformedRequest, "Content-Length or Transfer-Encoding must be given once, and not both")
    }
    guard hosts == 1 || (hosts == 0 && isOld) else {
      throw refusal(.malformedRequest, "Host must be given exactly once")
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

  private func refusal(_ code: ProblemCode, _ detail: String) -> RuleViolation {
    RuleViolation(Refusal(code, detail), requestID: head.headers.first(name: "X-Request-Id"))
  }
}

/// A request that is refused before it is handed to a route. Nothing after it on the connection is read.
struct RuleViolation: Error {
  let refusal: Refusal
  let requestID: String

  init(_ refusal: Refusal, requestID: String?) {
    self.refusal = refusal
    self.requestID = RequestIdentity.requestID(given: requestID)
  }

  /// Describes an error of the parser.
  init(_ error: HTTPParserError) {
    let refusal =
      switch error {
      case .headerOverflow:
        Refusal(.headersTooLarge, "the request line and header fields are larger than the server accepts")
      case .invalidMethod: Refusal(.notImplemented, "this server does not know the request's method")
      default: Refusal(.malformedRequest, "the request is not well-formed HTTP")
      }
    self.init(refusal, requestID: nil)
  }

  /// The answer and its body.
  var answer: (head: HTTPResponse, document: [UInt8]) {
    let problem = Problem(refusal: refusal, requestID: requestID)
    var head = HTTPResponse(status: refusal.code.answer.status, headerFields: problem.headers)
    head.headerFields[.requestID] = requestID
    return (head, problem.document)
  }
}
