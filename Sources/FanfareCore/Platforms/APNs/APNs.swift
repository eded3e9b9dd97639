/// The Apple Push Notification service.
package enum APNs: PlatformVocabulary {
  package static let code: UInt8 = 1
  package static let name = "apns"
  package static let title = "APNs"
  package static let system = "ios"
  package static let absentHandle = String(repeating: "0", count: 64)
  package static let payloadLimit = 4096

  // Not `apns-topic`: the hub's credential determines it.
  package static let headers: Set = ["apns-collapse-id", "apns-expiration", "apns-priority", "apns-push-type"]

  package static func normalized(handle: String) -> String { handle.lowercased() }

  package static func problem(withHandle handle: String) -> String? {
    isToken(handle) ? nil : "must be an even number of 2 to 400 hexadecimal digits"
  }

  /// Whether the text is a device token.
  package static func isToken(_ text: String) -> Bool {
    // Called for every push. Reading a span is several times as fast as iterating over the string, and a loop without
    // branches is vectorized.
    let bytes = text.utf8Span.span
    guard bytes.count % 2 == 0, (2...400).contains(bytes.count) else { return false }
    var others: UInt8 = 0
    for index in bytes.indices {
      let isDigit = bytes[index] &- UInt8(ascii: "0") < 10
      let isLetter = (bytes[index] | 0x20) &- UInt8(ascii: "a") < 6
      others |= isDigit != isLetter ? 0 : 1
    }
    return others == 0
  }

  package static func reserves(dataKey key: String) -> Bool { key == "aps" }

  package static func accepts(collapseKey key: String) -> Bool { APNsFields.isCollapseID(key) }

  package static func check(_ content: Content, collapseKey: String?) throws(ContentFault) {
    _ = try APNsPayload(content)
    _ = try APNsFields(content.headers, collapseKey: collapseKey)
  }

  package static func checkParts(of message: Message?, headers: [String: String]) throws(ContentFault) {
    _ = try APNsFields(headers, collapseKey: nil)
    if let message { try APNsPayload.checkKeys(of: message) }
  }

  package static func notice(_ text: String) -> NativePayload {
    .json(
      JSONWriter.object {
        $0.object("aps") { $0.member("alert", text) }
        $0.member("inAppMessage", text)
      })
  }

  package static func announcement(of id: SecurePayloadID) -> NativePayload {
    .json(
      JSONWriter.object {
        $0.object("aps") { $0.member("content-available", 1) }
        $0.member("secureId", id)
      })
  }

  // Apple asks for 15 minutes after an error of its own, which is reached in three steps.
  package static let refused = Backoff(first: .seconds(30), growth: 5, limit: .seconds(15 * 60))

  package static let azure = [
    AzureKind(
      name: "Apple", installation: "apns", handleElement: "DeviceToken", outcomes: "Apns",
      credential: "ApnsCredential")
  ]
}

extension Platform {
  package static var apns: Platform { APNs.platform }
}
