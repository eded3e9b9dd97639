import FanfareCore

/// What the tutorial's apps understand, in each service's own form.
enum AppNotification {
  /// A message that is shown: `From U: M`.
  static func content(text: String, for platform: Platform) -> Content {
    switch platform {
    case .apns:
      var payload: [UInt8] = []
      payload.append(literal: #"{"aps":{"alert":"#)
      payload.appendJSON(text)
      payload.append(literal: #"},"inAppMessage":"#)
      payload.appendJSON(text)
      payload.append(UInt8(ascii: "}"))
      return Content(apns: payload)
    case .fcm: return Content(fcm: data("message", text))
    case .wns:
      let binding =
        #"<toast><visual><binding template="ToastText01"><text id="1">\#(xml(text))</text></binding></visual></toast>"#
      return Content(wns: binding)
    }
  }

  /// The announcement of a secure payload: nothing is shown, the app fetches the payload by its id.
  static func announcement(of id: SecurePayloadID) -> Content {
    var payload: [UInt8] = []
    payload.append(literal: #"{"aps":{"content-available":1},"secureId":"#)
    payload.appendJSON(id)
    payload.append(UInt8(ascii: "}"))
    return Content(apns: payload, fcm: data("secureId", id.description), wns: id.description)
  }

  private static func data(_ key: String, _ value: String) -> [UInt8] {
    var payload: [UInt8] = []
    payload.append(literal: #"{"data":{""#)
    payload.append(contentsOf: key.utf8)
    payload.append(literal: #"":"#)
    payload.appendJSON(value)
    payload.append(literal: "}}")
    return payload
  }

  /// Character data of an XML 1.0 document. Characters that XML 1.0 cannot hold in any form (§2.2) are left out; a
  /// carriage return is written as a reference, because a parser would make a line feed of it (§2.11).
  static func xml(_ text: String) -> String {
    var output = ""
    output.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": output += "&amp;"
      case "<": output += "&lt;"
      case ">": output += "&gt;"
      case "\r": output += "&#13;"
      case "\t", "\n": output.unicodeScalars.append(scalar)
      case "\u{0}"..<"\u{20}", "\u{FFFE}", "\u{FFFF}": break
      default: output.unicodeScalars.append(scalar)
      }
    }
    return output
  }
}
