/// Firebase Cloud Messaging; older apps call it GCM.
package enum FCM: PlatformVocabulary {
  package static let code: UInt8 = 2
  package static let name = "fcm"
  package static let aliases = ["gcm"]
  package static let title = "FCM"
  package static let system = "android"
  package static let absentHandle = "fanfare-doctor"
  package static let payloadLimit = 4096
  package static let messageLimit = FCMPayload.limit

  // FCM's own limit counts keys and values only: not the rest of the template, nor the escapes, of at most 6 bytes for
  // one.
  package static let templateLimit = Template.maximumLength + 6 * payloadLimit

  package static func problem(withHandle handle: String) -> String? {
    let bytes = handle.utf8Span.span
    var others: UInt8 = 0
    for index in bytes.indices { others |= bytes[index] &- 0x21 < 0x5E ? 0 : 1 }
    return others == 0 ? nil : "must be visible ASCII without spaces"
  }

  package static func reserves(dataKey key: String) -> Bool { FCMPayload.isReserved(key) }

  package static func check(_ content: Content, collapseKey: String?) throws(ContentFault) {
    if case .json(let native) = content.native[.fcm] {
      _ = try FCMPayload(native)
    } else {
      _ = try FCMPayload.message(of: content)
    }
  }

  package static func checkParts(of message: Message?, headers: [String: String]) throws(ContentFault) {
    if let message { try FCMPayload.checkKeys(of: message) }
  }

  package static func notice(_ text: String) -> NativePayload {
    .json(JSONWriter.object { $0.object("data") { $0.member("message", text) } })
  }

  package static func announcement(of id: SecurePayloadID) -> NativePayload {
    .json(JSONWriter.object { $0.object("data") { $0.member("secureId", id) } })
  }

  // Google documents 10 s, doubling; and after 429 a minute at least, doubling, and an end after an hour.
  package static let refused = Backoff(first: .seconds(10), limit: .seconds(10 * 60))
  package static let throttled: Backoff? = Backoff(first: .seconds(60), limit: .seconds(40 * 60))

  package static let azure = [
    AzureKind(
      name: "Gcm", installation: "gcm", aliases: ["fcm"], handleElement: "GcmRegistrationId", outcomes: "Gcm",
      envelope: "message"),
    AzureKind(
      name: "FcmV1", installation: "fcmV1", handleElement: "FcmV1RegistrationId", outcomes: "FcmV1",
      credential: "FcmV1Credential", envelope: "message"),
  ]
}

extension Platform {
  package static var fcm: Platform { FCM.platform }
}
