package import FanfareCore

/// Renders a send for Apple devices.
///
/// A portable message becomes `aps` with `alert`, `badge` and `sound`; its data become siblings of `aps`. A message
/// with data only is a background push. A native payload is sent unchanged, and its push type is derived from it. A
/// data key `aps` is refused, because it would replace what the message shows.
package enum APNsRenderer {
  /// `apns-push-type` and `apns-priority`, in this order: the first two header fields of every rendering.
  enum Class: Sendable {
    case alertNow
    case alertWhenConvenient
    /// APNs refuses a background push with a priority other than 5.
    case background

    var fields: [RenderedPush.Field] {
      switch self {
      case .alertNow: Self.alertNowFields
      case .alertWhenConvenient: Self.alertWhenConvenientFields
      case .background: Self.backgroundFields
      }
    }

    /// Derives the class from the fields of a rendering.
    init(of rendering: RenderedPush) {
      guard rendering.headers.count >= 2 else {
        self = .alertNow
        return
      }
      if rendering.headers[0].value == "background" {
        self = .background
      } else {
        self = rendering.headers[1].value == "5" ? .alertWhenConvenient : .alertNow
      }
    }

    private static let alertNowFields = makeFields(type: "alert", priority: "10")
    private static let alertWhenConvenientFields = makeFields(type: "alert", priority: "5")
    private static let backgroundFields = makeFields(type: "background", priority: "5")

    private static func makeFields(type: String, priority: String) -> [RenderedPush.Field] {
      [RenderedPush.Field("apns-push-type", type), RenderedPush.Field("apns-priority", priority)]
    }
  }

  /// The most bytes of `apns-collapse-id`.
  static let maximumCollapseLength = 64

  /// See `PushSender.render(_:)`.
  package static func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    let body: [UInt8]
    let isBackground: Bool
    let content = send.content
    if let native = content.apns {
      body = native
      guard body.count <= Platform.apns.payloadLimit else { throw .payloadTooLarge }
      isBackground = try isBackgroundPayload(native)
    } else if let message = content.message, !message.isEmpty {
      guard message.data["aps"] == nil else { throw .reservedDataKey }
      isBackground = message.title == nil && message.body == nil && message.badge == nil && message.sound == nil
      body = render(message, isBackground: isBackground)
    } else {
      throw .payloadEmpty
    }
    guard body.count <= Platform.apns.payloadLimit else { throw .payloadTooLarge }
    let pushClass = try pushClass(of: send, isBackground: isBackground)
    let keptUntil = try content.headers["apns-expiration"].map(moment)
    guard let key = content.headers["apns-collapse-id"] ?? send.collapseKey, !key.isEmpty else {
      return RenderedPush(headers: pushClass.fields, body: body, keptUntil: keptUntil)
    }
    guard key.utf8.count <= maximumCollapseLength, HeaderValue.isSound(key) else { throw .badCollapseID }
    return RenderedPush(
      headers: pushClass.fields + [RenderedPush.Field("apns-collapse-id", key)], body: body, keptUntil: keptUntil)
  }

  /// The class by the caller's header fields; where they are missing, by the payload and the send's priority.
  private static func pushClass(of send: SendRequest, isBackground: Bool) throws(PushOutcome) -> Class {
    var (isBackground, isUrgent) = (isBackground, send.priority == .high)
    switch send.content.headers["apns-push-type"] {
    case nil: break
    case "alert": isBackground = false
    case "background": isBackground = true
    default: throw .badHeader
    }
    switch send.content.headers["apns-priority"] {
    case nil: break
    case "10": isUrgent = true
    case "1", "5": isUrgent = false
    default: throw .badHeader
    }
    return isBackground ? .background : isUrgent ? .alertNow : .alertWhenConvenient
  }

  /// The moment of `apns-expiration`: Unix seconds (0: APNs does not keep the push), or a time of RFC 3339.
  private static func moment(_ text: String) throws(PushOutcome) -> UnixTime {
    if let seconds = UInt32(text) { return UnixTime(milliseconds: Int64(seconds) * 1000) }
    guard let moment = UnixTime(utf8: text.utf8Span.span) else { throw .badHeader }
    return moment
  }

  private static func render(_ message: Message, isBackground: Bool) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(256)
    body.append(contentsOf: (isBackground ? "{\"aps\":{\"content-available\":1" : "{\"aps\":{").utf8)
    var needsComma = false
    func begin(_ key: String) {
      if needsComma { body.append(UInt8(ascii: ",")) }
      needsComma = true
      body.append(contentsOf: key.utf8)
    }
    if message.title != nil || message.body != nil {
      begin("\"alert\":{")
      if let title = message.title {
        body.append(contentsOf: "\"title\":".utf8)
        body.appendJSON(title)
      }
      if let text = message.body {
        body.append(contentsOf: (message.title == nil ? "\"body\":" : ",\"body\":").utf8)
        body.appendJSON(text)
      }
      body.append(UInt8(ascii: "}"))
    }
    if let badge = message.badge {
      begin("\"badge\":")
      body.appendJSON(badge)
    }
    if let sound = message.sound {
      begin("\"sound\":")
      body.appendJSON(sound)
    }
    body.append(UInt8(ascii: "}"))
    for (key, value) in message.sortedData {
      body.append(UInt8(ascii: ","))
      body.appendJSON(key)
      body.append(UInt8(ascii: ":"))
      body.appendJSON(value)
    }
    body.append(UInt8(ascii: "}"))
    return body
  }

  /// Whether the payload wakes the app without showing anything: `content-available` is 1, and there is no alert, badge
  /// or sound.
  private static func isBackgroundPayload(_ payload: [UInt8]) throws(PushOutcome) -> Bool {
    var isContentAvailable = false
    var showsSomething = false
    do {
      var reader = try JSONReader(payload[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        guard case "aps" = key, try reader.nextKind() == .object else { return try reader.skipValue() }
        try reader.readObject { (key, reader) throws(JSONError) in
          switch key {
          case "content-available": isContentAvailable = try reader.readRaw().elementsEqual("1".utf8)
          case "alert", "badge", "sound":
            showsSomething = true
            try reader.skipValue()
          default: try reader.skipValue()
          }
        }
      }
      try reader.finish()
    } catch {
      throw .badPayload
    }
    return isContentAvailable && !showsSomething
  }
}
