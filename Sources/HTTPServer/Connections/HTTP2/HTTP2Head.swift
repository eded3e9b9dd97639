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

  /// The most bytes of fields whose memory is kept for the next request.
  private static let keptSize = 2048

  private var key = KeyFields()
  private var path = ""
  private var method: HTTPRequest.Method?
  /// Whether there are several hosts, and they differ.
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
  private var block = HTTP2Headers()

  var fields: RequestFields { RequestFields(block, key: key) }

  mutating func add(name: Span<UInt8>, value: Span<UInt8>, within limits: Limits) {
    size += name.count + value.count
    // The pseudo fields are counted too: there are at most four.
    if size > limits.size || name.count + value.count > limits.fieldSize || block.count >= limits.count + 4 {
      isTooLarge = true
    }
    guard !isTooLarge else { return }
    block.append(name: name, value: value)
    let (former, hosts) = (key.host, key.hosts)
    // Most fields are known by their length to have no meaning here.
    switch name.count {
    case 5 where name.isField(":path"): path = String(copying: value)
    case 6 where name.isField("expect"): expectsContinue = value.isField("100-continue")
    case 7 where name.isField(":method"): method = HTTP1Head.method(value)
    case 14 where name.isField("content-length"): declaredLength = Int(contentLength: value)
    case 4, 6, 10...16: key.note(name, at: KeyFields.Place(block.end - value.count, value.count))
    default: break
    }
    // Names of hosts have no letter case.
    if key.hosts > max(1, hosts), let former, let host = fields.host,
      block.text(at: former.start..<former.start + former.count).lowercased() != host.lowercased()
    {
      hasOtherHosts = true
    }
  }

  /// Forgets the request, and keeps the memory for the next one.
  mutating func reset() {
    let size = size
    var block = block
    self = HTTP2Head()
    guard size <= Self.keptSize else { return }
    block.removeAll()
    self.block = block
  }

  /// Makes the exchange of the request. nghttp2 has checked the names, that each pseudo field is given once, and that
  /// there is no field that concerns a connection. `hasBody`: whether there is a body, or may be.
  func exchange(
    _ body: RequestBody, hasBody: Bool, on connection: ClientConnection, slot: AnswerSlot?
  ) throws(RequestFault) -> Exchange {
    guard !isTooLarge else { throw .headersTooLarge }
    // CONNECT has no path.
    guard let method, method != .connect else { throw .unknownMethod }
    guard key.host != nil, !hasOtherHosts else {
      throw RequestFault(.malformed, "Host must be given exactly once, or be the same as :authority")
    }
    let length: BodyLength = declaredLength.map { .known($0) } ?? (hasBody ? .unknown : .none)
    return Exchange(
      method, RequestTarget(path), headers: fields, body: body, length: length, on: connection, slot: slot)
  }
}
