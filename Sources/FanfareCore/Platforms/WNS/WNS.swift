/// Windows Push Notification Services.
package enum WNS: PlatformVocabulary {
  package static let code: UInt8 = 4
  package static let name = "wns"
  package static let title = "WNS"
  package static let system = "windows"
  package static let handleMember = "channelUri"
  package static let hasTiles = true
  package static let absentHandle = "https://fanfare-doctor.notify.windows.com/?token=none"
  package static let payloadLimit = 5000
  package static let nativeForm = NativePayload.Form.text

  package static let headers: Set = [
    "content-type", "x-wns-cache-policy", "x-wns-group", "x-wns-match", "x-wns-priority", "x-wns-suppresspopup",
    "x-wns-tag", "x-wns-ttl", "x-wns-type",
  ]

  package static func problem(withHandle handle: String) -> String? {
    ChannelURI(handle) == nil ? "must be an https URL on a host of notify.windows.com" : nil
  }

  package static func check(_ content: Content, collapseKey: String?) throws(ContentFault) {
    _ = try WNSFields(content.headers, of: try WNSPayload(content).kind)
  }

  package static func checkParts(of message: Message?, headers: [String: String]) throws(ContentFault) {
    _ = try WNSFields(headers, of: nil)
  }

  package static func notice(_ text: String) -> NativePayload {
    .text(
      #"<toast><visual><binding template="ToastText01"><text id="1">\#(xml(text))</text></binding></visual></toast>"#)
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

  package static func announcement(of id: SecurePayloadID) -> NativePayload { .text(id.description) }

  // WNS throttles channels for minutes.
  package static let refused = Backoff(first: .seconds(10 * 60), limit: .seconds(60 * 60))

  package static let azure = [
    AzureKind(
      name: "Windows", installation: "wns", handleElement: "ChannelUri", outcomes: "Wns", credential: "WnsCredential")
  ]
}

extension Platform {
  package static var wns: Platform { WNS.platform }
}
