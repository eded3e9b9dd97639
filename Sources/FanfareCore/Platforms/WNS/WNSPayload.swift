/// A payload for Windows and its kind.
///
/// A portable message with a title or a text becomes a `ToastGeneric` toast, with the data as a JSON object in its
/// `launch` arguments; one with a badge only becomes a badge; one with data only becomes a raw notification with that
/// JSON. A WNS notification is only one of these, so a toast does not change the badge. A native payload stays as it
/// is, and its root element gives the kind; one that is no toast, tile or badge is a raw notification.
package struct WNSPayload: Sendable {
  /// The kinds of notification, as `X-WNS-Type` names them.
  package enum Kind: String, CaseIterable, Sendable {
    case toast = "wns/toast"
    case tile = "wns/tile"
    case badge = "wns/badge"
    case raw = "wns/raw"

    /// The media type that WNS requires.
    package var mediaType: String { self == .raw ? "application/octet-stream" : "text/xml" }
  }

  package let kind: Kind
  package let body: [UInt8]

  private static let limit = WNS.payloadLimit

  /// Makes the payload of a content. Throws if WNS would refuse it for every device.
  package init(_ content: Content) throws(ContentFault) {
    let field: String
    if case .text(let native) = content.native[.wns] {
      guard !native.isEmpty else { throw .empty("native.wns") }
      guard native.utf8.count <= Self.limit else { throw .tooLarge("native.wns", limit: Self.limit, of: "WNS") }
      (kind, body, field) = (Self.kind(of: native), Array(native.utf8), "native.wns")
    } else if let message = content.message, Self.covers(message) {
      (kind, body) = Self.render(message)
      field = "message"
    } else {
      throw .empty("message")
    }
    guard body.count <= Self.limit else { throw .tooLarge(field, limit: Self.limit, of: "WNS") }
  }

  /// Whether the message has anything for Windows, which has no sound without a text.
  package static func covers(_ message: Message) -> Bool {
    message.title != nil || message.body != nil || message.badge != nil || !message.data.isEmpty
  }

  private static func render(_ message: Message) -> (Kind, [UInt8]) {
    var body: [UInt8] = []
    body.reserveCapacity(256)
    guard message.title != nil || message.body != nil else {
      guard let badge = message.badge else { return (.raw, json(message)) }
      body.append(contentsOf: "<badge value=\"".utf8)
      body.appendJSON(max(badge, 0))
      body.append(contentsOf: "\"/>".utf8)
      return (.badge, body)
    }
    body.append(contentsOf: "<toast".utf8)
    if !message.data.isEmpty {
      body.append(contentsOf: " launch=\"".utf8)
      body.appendXML(String(decoding: json(message), as: UTF8.self))
      body.append(UInt8(ascii: "\""))
    }
    body.append(contentsOf: "><visual><binding template=\"ToastGeneric\">".utf8)
    appendText(message.title, to: &body)
    appendText(message.body, to: &body)
    body.append(contentsOf: "</binding></visual></toast>".utf8)
    return (.toast, body)
  }

  private static func appendText(_ text: String?, to body: inout [UInt8]) {
    guard let text else { return }
    body.append(contentsOf: "<text>".utf8)
    body.appendXML(text)
    body.append(contentsOf: "</text>".utf8)
  }

  private static func json(_ message: Message) -> [UInt8] {
    JSONWriter.object { json in
      for (key, value) in message.sortedData { json.member(named: key, value) }
    }
  }

  /// The kind of a native payload: that of its root element, behind the prolog (XML 1.0 §2.8: white space, a byte order
  /// mark, the declaration, comments, processing instructions and the document type).
  package static func kind(of payload: String) -> Kind {
    var rest = payload.utf8[...]
    if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
    while true {
      rest = rest.drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
      let isSkipped =
        if rest.starts(with: "<?".utf8) {
          rest.skip(past: "?>")
        } else if rest.starts(with: "<!--".utf8) {
          rest.skip(past: "-->", from: 4)
        } else if rest.starts(with: "<!".utf8) {
          rest.skipDocumentType()
        } else {
          false
        }
      if !isSkipped { break }
    }
    for (name, kind) in [("<toast", Kind.toast), ("<tile", .tile), ("<badge", .badge)]
    where rest.starts(with: name.utf8) {
      guard let next = rest.dropFirst(name.utf8.count).first else { continue }
      let endsName =
        next == UInt8(ascii: ">") || next == UInt8(ascii: "/") || next == 0x20 || (0x09...0x0D).contains(next)
      if endsName { return kind }
    }
    return .raw
  }
}

extension Substring.UTF8View {
  /// Removes everything up to the end of the first `end` behind `offset` bytes. Returns false if there is none.
  fileprivate mutating func skip(past end: String, from offset: Int = 2) -> Bool {
    let end = Array(end.utf8)
    var rest = dropFirst(offset)
    while let found = rest.firstIndex(of: end[0]) {
      rest = rest[found...]
      if rest.starts(with: end) {
        self = rest.dropFirst(end.count)
        return true
      }
      rest = rest.dropFirst()
    }
    return false
  }

  /// Removes a document type with its quoted texts and its internal subset. Returns false if it has no end.
  fileprivate mutating func skipDocumentType() -> Bool {
    var rest = self
    var depth = 0
    while let byte = rest.first {
      // A quotation mark in a comment or an instruction opens no text.
      let hasEnd =
        switch byte {
        case UInt8(ascii: "\""): rest.skip(past: "\"", from: 1)
        case UInt8(ascii: "'"): rest.skip(past: "'", from: 1)
        case _ where rest.starts(with: "<!--".utf8): rest.skip(past: "-->", from: 4)
        case _ where rest.starts(with: "<?".utf8): rest.skip(past: "?>")
        default: rest.popFirst(into: &depth)
        }
      guard hasEnd else { return false }
      if depth == 0 {
        self = rest
        return true
      }
    }
    return false
  }

  /// Removes a byte that is not quoted, and counts the markup that is open.
  private mutating func popFirst(into depth: inout Int) -> Bool {
    let byte = popFirst()
    if byte == UInt8(ascii: "<") { depth += 1 }
    if byte == UInt8(ascii: ">") { depth -= 1 }
    return true
  }
}

/// The caller's header fields of a push for Windows.
package struct WNSFields: Sendable {
  /// The kind that the push has: the caller's, or else the payload's; nil if neither is known.
  package let kind: WNSPayload.Kind?
  /// The caller's fields for WNS, sorted by name.
  package let fields: [(name: String, value: String)]

  /// The header field of the time to live in seconds.
  package static let timeToLive = "x-wns-ttl"
  /// The most characters of a tag.
  private static let maximumTagLength = 16

  /// Reads the caller's header fields for a payload of the kind. Throws if WNS would refuse one.
  package init(_ headers: [String: String], of payload: WNSPayload.Kind?) throws(ContentFault) {
    fields = headers.filter { WNS.headers.contains($0.key) }.sorted { $0.key < $1.key }
      .map { ($0.key, $0.value) }
    kind =
      try headers["x-wns-type"].map { (text) throws(ContentFault) in
        guard let kind = WNSPayload.Kind(rawValue: text) else {
          throw .badHeader("x-wns-type", "must be wns/toast, wns/tile, wns/badge or wns/raw")
        }
        return kind
      } ?? payload
    for (name, value) in fields {
      guard PushHeader.isSound(value) else {
        throw .badHeader(name, "must be 1 to \(PushHeader.maximumLength) visible ASCII characters")
      }
      if let problem = problem(with: name, value) { throw .badHeader(name, problem) }
    }
  }

  private func problem(with name: String, _ value: String) -> String? {
    switch name {
    case Self.timeToLive: UInt32(value) == nil ? "must be a whole number of seconds" : nil
    case "x-wns-priority": ["1", "2", "3", "4"].contains(value) ? nil : "must be 1 to 4"
    case "x-wns-cache-policy": ["cache", "no-cache"].contains(value) ? nil : "must be cache or no-cache"
    case "x-wns-tag", "x-wns-group":
      Self.isTag(value) ? nil : "must have 1 to \(Self.maximumTagLength) letters and digits"
    case "content-type":
      kind.map { $0.mediaType == Self.mediaType(value) } ?? true
        ? nil : "must be text/xml for toasts, tiles and badges, and application/octet-stream for raw notifications"
    default: nil
    }
  }

  /// Whether the text can be a tag.
  package static func isTag(_ key: String) -> Bool {
    (1...maximumTagLength).contains(key.utf8.count) && key.utf8.allSatisfy(\.isLetterOrDigit)
  }

  /// A media type without its parameters.
  private static func mediaType(_ value: String) -> String {
    value.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
  }
}
