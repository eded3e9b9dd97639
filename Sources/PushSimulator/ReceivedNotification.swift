package import FanfareCore

/// A push that the simulator accepted.
package struct ReceivedNotification: Sendable {
  package let platform: Platform
  /// The device's address: an APNs token in lower case, an FCM token (`/topics/NAME` for a topic), a WNS channel's
  /// token.
  package let handle: String
  /// When it was accepted.
  package let time: UnixTime
  /// The id that identifies repetitions of the push: `apns-id`, or the sender's own id in the message; nil if there is
  /// none.
  package let pushID: String?
  /// The request's header fields, without pseudo fields and credentials.
  package let headers: [HeaderField]
  /// The payload as sent.
  package let payload: [UInt8]

  package init(
    platform: Platform, handle: String, time: UnixTime, pushID: String?, headers: [HeaderField], payload: [UInt8]
  ) {
    self.platform = platform
    self.handle = handle
    self.time = time
    self.pushID = pushID
    self.headers = headers
    self.payload = payload
  }

  package var text: String { String(decoding: payload, as: UTF8.self) }

  /// The value of the first header field with this name, given in lower case.
  package func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name }?.value
  }
}

/// A header field, as sent.
package struct HeaderField: Hashable, Sendable {
  package let name: String
  package let value: String

  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// Where the senders put a push's id on platforms without a field for it. (APNs has `apns-id`.)
package enum PushIdentity {
  /// The member of FCM's `data`.
  package static let dataKey = "pushId"
  /// The correlation vector's header field of WNS, in lower case.
  package static let correlationHeader = "ms-cv"

  /// The base of a correlation vector, before its first dot, which is the same for every repetition.
  static func base(ofVector vector: String?) -> String? {
    vector.map { String($0.prefix { $0 != "." }) }
  }
}
