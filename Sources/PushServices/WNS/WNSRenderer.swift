import Crypto
package import FanfareCore

/// Renders a send for Windows; see `WNSPayload` and `WNSFields`.
package enum WNSRenderer {
  /// See `PushSender.render(_:)`.
  package static func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    let (payload, own): (WNSPayload, WNSFields)
    do throws(ContentFault) {
      payload = try WNSPayload(send.content)
      own = try WNSFields(send.content.headers, of: payload.kind)
    } catch { throw error.outcome }
    let kind = own.kind ?? payload.kind
    var headers = kind.fields
    headers.append(send.priority == .high ? highPriority : normalPriority)
    // Documented for tiles and toasts only; elsewhere WNS answers 400 because of a conflicting header.
    if kind == .toast || kind == .tile, let key = send.collapseKey, !key.isEmpty {
      headers.append(RenderedPush.Field("x-wns-tag", tag(of: key)))
    }
    for (name, value) in own.fields {
      headers.removeAll { $0.name == name }
      headers.append(RenderedPush.Field(name, value))
    }
    return RenderedPush(headers: headers, body: payload.body)
  }

  private static let highPriority = RenderedPush.Field("x-wns-priority", "1")
  private static let normalPriority = RenderedPush.Field("x-wns-priority", "2")

  /// The tag by which notifications with the collapse key replace one another: the key itself if it can be one, or else
  /// the first 64 bits of its SHA-256 in hexadecimal digits.
  static func tag(of key: String) -> String {
    WNSFields.isTag(key) ? key : Hexadecimal.text(SHA256.hash(data: Array(key.utf8)).prefix(8))
  }
}

extension WNSPayload.Kind {
  /// The header fields of the kind.
  var fields: [RenderedPush.Field] {
    switch self {
    case .toast: Self.toastFields
    case .tile, .badge: [RenderedPush.Field("content-type", mediaType), RenderedPush.Field("x-wns-type", rawValue)]
    case .raw: Self.rawFields
    }
  }

  private static let toastFields = [
    RenderedPush.Field("content-type", Self.toast.mediaType), RenderedPush.Field("x-wns-type", Self.toast.rawValue),
  ]
  private static let rawFields = [
    RenderedPush.Field("content-type", Self.raw.mediaType), RenderedPush.Field("x-wns-type", Self.raw.rawValue),
    // Only raw notifications are not kept for a device that is offline, unless this asks for it.
    RenderedPush.Field("x-wns-cache-policy", "cache"),
  ]
}
