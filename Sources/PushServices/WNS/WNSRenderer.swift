package import FanfareCore

/// Renders a send for Windows.
///
/// A portable message with a title or a text becomes a `ToastGeneric` toast, with the data as a JSON object in its
/// `launch` arguments; one with a badge only becomes a badge; one with data only becomes a raw notification with that
/// JSON. A WNS notification is only one of these, so a toast does not change the badge. Native XML is sent unchanged
/// and its root element gives the kind; any other native payload is a raw notification.
package enum WNSRenderer {
  /// The kinds of notification, as `X-WNS-Type` names them.
  enum Kind: String {
    case toast = "wns/toast"
    case tile = "wns/tile"
    case badge = "wns/badge"
    case raw = "wns/raw"
  }

  /// The header field of the time to live in seconds. The caller's own is part of the rendering; the exchange limits it.
  static let timeToLive = "x-wns-ttl"

  /// The most characters of `X-WNS-Tag`.
  private static let maximumTagLength = 16

  /// See `PushSender.render(_:)`.
  package static func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    let kind: Kind
    let body: [UInt8]
    if let native = send.content.wns {
      guard !native.isEmpty else { throw .payloadEmpty }
      (kind, body) = (self.kind(ofNative: native), Array(native.utf8))
    } else if let message = send.content.message, !message.isEmpty {
      (kind, body) = try render(message)
    } else {
      throw .payloadEmpty
    }
    guard body.count <= Platform.wns.payloadLimit else { throw .payloadTooLarge }
    var headers = kind.fields
    headers.append(send.priority == .high ? highPriority : normalPriority)
    // Documented for tiles and toasts only; elsewhere WNS answers 400 because of a conflicting header.
    if kind == .toast || kind == .tile, let key = send.collapseKey, isTag(key) {
      headers.append(RenderedPush.Field("x-wns-tag", key))
    }
    for (name, value) in send.content.headers where PushHeader.platform(of: name) == .wns {
      guard PushHeader.isSound(value), name != timeToLive || UInt32(value) != nil else { throw .badHeader }
      headers.removeAll { $0.name == name }
      headers.append(RenderedPush.Field(name, value))
    }
    return RenderedPush(headers: headers, body: body)
  }

  private static let highPriority = RenderedPush.Field("x-wns-priority", "1")
  private static let normalPriority = RenderedPush.Field("x-wns-priority", "2")

  private static func render(_ message: Message) throws(PushOutcome) -> (Kind, [UInt8]) {
    var body: [UInt8] = []
    body.reserveCapacity(256)
    guard message.title != nil || message.body != nil else {
      if let badge = message.badge {
        body.append(contentsOf: "<badge value=\"".utf8)
        body.appendJSON(max(badge, 0))
        body.append(contentsOf: "\"/>".utf8)
        return (.badge, body)
      }
      guard !message.data.isEmpty else { throw .payloadEmpty }
      return (.raw, json(message))
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

  /// The kind given by the root element of a native payload, behind any byte order mark, declaration and white space.
  private static func kind(ofNative payload: String) -> Kind {
    var rest = payload.utf8[...]
    func skipWhitespace() {
      while let byte = rest.first, byte == 0x20 || (0x09...0x0D).contains(byte) { rest.removeFirst() }
    }
    if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
    skipWhitespace()
    if rest.starts(with: "<?xml".utf8), let end = rest.firstIndex(of: UInt8(ascii: ">")) {
      rest = rest[rest.index(after: end)...]
      skipWhitespace()
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

  private static func isTag(_ key: String) -> Bool {
    (1...maximumTagLength).contains(key.utf8.count) && key.utf8.allSatisfy(\.isLetterOrDigit)
  }
}

extension WNSRenderer.Kind {
  /// The header fields of the kind.
  var fields: [RenderedPush.Field] {
    switch self {
    case .toast: Self.toastFields
    case .tile, .badge: [RenderedPush.Field("content-type", "text/xml"), RenderedPush.Field("x-wns-type", rawValue)]
    case .raw: Self.rawFields
    }
  }

  private static let toastFields = [
    RenderedPush.Field("content-type", "text/xml"), RenderedPush.Field("x-wns-type", Self.toast.rawValue),
  ]
  private static let rawFields = [
    RenderedPush.Field("content-type", "application/octet-stream"), RenderedPush.Field("x-wns-type", Self.raw.rawValue),
    // Only raw notifications are not kept for a device that is offline, unless this asks for it.
    RenderedPush.Field("x-wns-cache-policy", "cache"),
  ]
}
