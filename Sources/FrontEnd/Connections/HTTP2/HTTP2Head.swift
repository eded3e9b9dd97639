import HTTP2
import HTTPTypes

/// The header section of a request while it arrives, within the limits that HTTP/1.1 has too.
struct HTTP2Head {
  struct Limits {
    /// The most bytes of one field.
    let fieldSize: Int
    /// The most bytes of all fields.
    let size: Int
    /// The most fields.
    let count: Int
  }

  /// The methods that the parser of HTTP/1.1 knows, without CONNECT, which has no path.
  private static let methods: Set<String> = [
    "DELETE", "GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "COPY", "LOCK", "MKCOL", "MOVE", "PROPFIND",
    "PROPPATCH", "SEARCH", "UNLOCK", "BIND", "REBIND", "UNBIND", "ACL", "REPORT", "MKACTIVITY", "CHECKOUT", "MERGE",
    "M-SEARCH", "NOTIFY", "SUBSCRIBE", "UNSUBSCRIBE", "PATCH", "PURGE", "MKCALENDAR", "LINK", "UNLINK", "SOURCE",
    "QUERY",
  ]

  /// The most bytes of fields whose memory is kept for the next request.
  private static let keptSize = 2048

  /// What a direct answer depends on.
  private(set) var direct = RequestFields()
  /// The value of `:path`.
  private(set) var path = ""
  /// Whether the method is POST.
  private(set) var isPost = false
  /// Whether there is a `Host`, which must be compared with `:authority`.
  private(set) var hasHost = false
  /// The value of `Content-Length`.
  private(set) var declaredLength: Int?
  /// Whether the client may wait for `100 Continue`.
  private(set) var expectsContinue = false
  /// The bytes of all fields, kept or not.
  private(set) var size = 0
  /// Whether a limit is exceeded; then nothing more is kept.
  private(set) var isTooLarge = false
  /// All fields, as they came.
  private var fields = HTTP2Headers()

  mutating func add(name: Span<UInt8>, value: Span<UInt8>, within limits: Limits) {
    size += name.count + value.count
    // The pseudo fields are counted too: there are at most four.
    if size > limits.size || name.count + value.count > limits.fieldSize || fields.count >= limits.count + 4 {
      isTooLarge = true
    }
    guard !isTooLarge else { return }
    fields.append(name: name, value: value)
    // Most fields are known by their length to have no meaning for the connection or a direct answer.
    switch name.count {
    case 4 where name.isEqual(to: "host"): hasHost = true
    case 5 where name.isEqual(to: ":path"): path = String(copying: value)
    case 6 where name.isEqual(to: "expect"): expectsContinue = String(copying: value).lowercased() == "100-continue"
    case 7 where name.isEqual(to: ":method"): isPost = value.isEqual(to: "POST")
    case 14 where name.isEqual(to: "content-length"): declaredLength = Int(contentLength: String(copying: value))
    case 6, 10...16: direct.add(String(copying: name), String(copying: value))
    default: break
    }
  }

  /// Forgets the request, and keeps the memory for the next one.
  mutating func reset() {
    let size = size
    var fields = fields
    self = HTTP2Head()
    guard size <= Self.keptSize else { return }
    fields.removeAll()
    self.fields = fields
  }

  /// Makes the request as HTTP/1.1 would have given it. nghttp2 has checked the names, that each pseudo field is given
  /// once, and that there is no field that concerns a connection.
  func request(isSecure: Bool, hasBody: Bool) throws(Refusal) -> HTTPRequest {
    guard !isTooLarge else {
      throw Refusal(.headersTooLarge, "the request line and header fields are larger than the server accepts")
    }
    var method = ""
    var hosts: [String] = []
    var others = HTTPFields()
    others.reserveCapacity(fields.count)
    for (name, value) in fields {
      switch name {
      case ":method": method = value
      case ":authority", "host": hosts.append(value)
      case ":path", ":scheme": break
      default:
        guard let field = HTTPField.Name(name) else {
          throw Refusal(.malformedRequest, "the request is not well-formed HTTP")
        }
        others.append(HTTPField(name: field, value: value))
      }
    }
    guard Self.methods.contains(method), let known = HTTPRequest.Method(method) else {
      throw Refusal(.notImplemented, "this server does not know the request's method")
    }
    // Names of hosts have no letter case.
    guard let host = hosts.first, hosts.allSatisfy({ $0 == host || $0.lowercased() == host.lowercased() }) else {
      throw Refusal(.malformedRequest, "Host must be given exactly once, or be the same as :authority")
    }
    // What the rules for bodies look for.
    if hasBody, declaredLength == nil { others[.transferEncoding] = "chunked" }
    return HTTPRequest(
      method: known, scheme: isSecure ? "https" : "http", authority: host, path: path, headerFields: others)
  }
}

extension Span where Element == UInt8 {
  /// Whether the bytes are those of `text`.
  fileprivate func isEqual(to text: String) -> Bool { isEqual(to: text.utf8.span) }
}
