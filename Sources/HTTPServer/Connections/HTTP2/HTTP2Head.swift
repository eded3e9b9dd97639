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

  private(set) var key = KeyFields()
  private var path = ""
  private var method = ""
  /// The value of `:authority`, or of `Host`.
  private var authority: String?
  /// Whether there are several, and they differ.
  private var hasOtherHosts = false
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
    // Most fields are known by their length to have no meaning here.
    switch name.count {
    case 4 where name.isEqual(to: "host"), 10 where name.isEqual(to: ":authority"): noteHost(String(copying: value))
    case 5 where name.isEqual(to: ":path"): path = String(copying: value)
    case 6 where name.isEqual(to: "expect"): expectsContinue = String(copying: value).lowercased() == "100-continue"
    case 7 where name.isEqual(to: ":method"): method = String(copying: value)
    case 14 where name.isEqual(to: "content-length"): declaredLength = Int(contentLength: String(copying: value))
    case 6, 10...16: key.add(String(copying: name), String(copying: value))
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

  private mutating func noteHost(_ host: String) {
    guard let authority else { return authority = host }
    // Names of hosts have no letter case.
    if authority != host, authority.lowercased() != host.lowercased() { hasOtherHosts = true }
  }

  /// Makes the exchange of the request. nghttp2 has checked the names, that each pseudo field is given once, and that
  /// there is no field that concerns a connection. `hasBody`: whether there is a body, or may be.
  func exchange(
    _ body: RequestBody, hasBody: Bool, on connection: ClientConnection, slot: AnswerSlot?
  ) throws(RequestFault) -> Exchange {
    guard !isTooLarge else { throw .headersTooLarge }
    guard method == "POST" || Self.methods.contains(method), let known = HTTPRequest.Method(method) else {
      throw .unknownMethod
    }
    guard let authority, !hasOtherHosts else {
      throw RequestFault(.malformed, "Host must be given exactly once, or be the same as :authority")
    }
    let length: BodyLength = declaredLength.map { .known($0) } ?? (hasBody ? .unknown : .none)
    return Exchange(
      known, RequestTarget(path), authority: authority, headers: RequestFields(fields, key: key), body: body,
      length: length, on: connection, slot: slot)
  }
}

extension Span where Element == UInt8 {
  /// Whether the bytes are those of `text`.
  fileprivate func isEqual(to text: String) -> Bool { isEqual(to: text.utf8.span) }
}
