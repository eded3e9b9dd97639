package import FanfareCore

/// Renders a send for Apple devices; see `APNsPayload` and `APNsFields`.
package enum APNsRenderer {
  /// `apns-push-type` and `apns-priority`, in this order: the first two header fields of every rendering.
  enum Class: CaseIterable, Sendable {
    case alertNow
    case alertWhenConvenient
    case alertLow
    /// APNs refuses a background push with a priority other than 5.
    case background

    var fields: [RenderedPush.Field] {
      switch self {
      case .alertNow: Self.alertNowFields
      case .alertWhenConvenient: Self.alertWhenConvenientFields
      case .alertLow: Self.alertLowFields
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
        self =
          switch rendering.headers[1].value {
          case "5": .alertWhenConvenient
          case "1": .alertLow
          default: .alertNow
          }
      }
    }

    private static let alertNowFields = makeFields(.alert, .now)
    private static let alertWhenConvenientFields = makeFields(.alert, .convenient)
    private static let alertLowFields = makeFields(.alert, .low)
    private static let backgroundFields = makeFields(.background, .convenient)

    private static func makeFields(
      _ type: APNsFields.PushType, _ urgency: APNsFields.Urgency
    ) -> [RenderedPush.Field] {
      [RenderedPush.Field("apns-push-type", type.rawValue), RenderedPush.Field("apns-priority", urgency.rawValue)]
    }
  }

  /// See `PushSender.render(_:)`.
  package static func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    let (payload, fields): (APNsPayload, APNsFields)
    do throws(ContentFault) {
      payload = try APNsPayload(send.content)
      fields = try APNsFields(send.content.headers, collapseKey: send.collapseKey)
    } catch { throw error.outcome }
    var headers = pushClass(of: send, payload, fields).fields
    if let key = fields.collapseID { headers.append(RenderedPush.Field("apns-collapse-id", key)) }
    return RenderedPush(headers: headers, body: payload.body, keptUntil: fields.keptUntil)
  }

  /// The class by the caller's header fields; where they are missing, by the payload and the send's priority.
  private static func pushClass(of send: SendRequest, _ payload: APNsPayload, _ fields: APNsFields) -> Class {
    guard fields.pushType.map({ $0 == .alert }) ?? !payload.isBackground else { return .background }
    return switch fields.urgency ?? (send.priority == .high ? .now : .convenient) {
    case .now: .alertNow
    case .convenient: .alertWhenConvenient
    case .low: .alertLow
    }
  }
}
