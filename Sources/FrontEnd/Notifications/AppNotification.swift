import FanfareCore

/// Sends in the form that the tutorial apps understand.
enum AppNotification {
  /// Makes a send that shows a text on one platform.
  static func message(_ text: String, to recipient: String, on platform: Platform) -> SendFields {
    var fields = SendFields()
    fields.audience = .user(recipient)
    fields.platforms = PlatformSet(platform)
    switch platform {
    case .apns:
      fields.apns = JSONWriter.object {
        $0.object("aps") { $0.member("alert", text) }
        $0.member("inAppMessage", text)
      }
    case .fcm: fields.fcm = JSONWriter.object { $0.object("data") { $0.member("message", text) } }
    case .wns:
      fields.wns =
        #"<toast><visual><binding template="ToastText01"><text id="1">\#(xml(text))</text></binding></visual></toast>"#
    }
    return fields
  }

  /// Makes a silent send on all platforms that announces a secure payload.
  /// Both live for `lifetime` seconds. The app then fetches the payload by its id.
  static func announcement(of id: SecurePayloadID, to recipient: String, lifetime: Int) -> SendFields {
    var fields = SendFields()
    fields.audience = .user(recipient)
    fields.timeToLive = lifetime
    fields.apns = JSONWriter.object {
      $0.object("aps") { $0.member("content-available", 1) }
      $0.member("secureId", id)
    }
    fields.fcm = JSONWriter.object { $0.object("data") { $0.member("secureId", id) } }
    fields.wns = id.description
    return fields
  }

  /// Escapes character data of XML 1.0.
  /// Drops characters that XML 1.0 cannot represent (§2.2), and writes a carriage return as a reference, because
  /// parsers normalise it to a line feed (§2.11).
  private static func xml(_ text: String) -> String {
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
