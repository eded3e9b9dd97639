/// The values of `apns-push-type` (Apple, "Sending notification requests to APNs").
enum APNsPushType: String, CaseIterable, Sendable {
  case alert
  case background
  case voip
  case complication
  case controls
  case widgets
  case fileprovider
  case liveactivity
  case location
  case mdm
  case pushtotalk

  /// What the topic has after the bundle id.
  var topicSuffix: String {
    switch self {
    case .alert, .background, .mdm: ""
    case .voip: ".voip"
    case .complication: ".complication"
    case .controls: ".push-type.controls"
    case .widgets: ".push-type.widgets"
    case .fileprovider: ".pushkit.fileprovider"
    case .liveactivity: ".push-type.liveactivity"
    case .location: ".location-query"
    case .pushtotalk: ".voip-ptt"
    }
  }

  /// The most bytes of a payload.
  var payloadLimit: Int { self == .voip ? 5120 : 4096 }
}
