package import FanfareCore

/// One push that the simulator accepted: what arrived on "the phone".
package struct ReceivedNotification: Sendable {
  /// The platform it came by.
  package let platform: Platform
  /// The device's address: an APNs token in lower case, an FCM token (`/topics/NAME` for a topic), a WNS channel's
  /// token.
  package let handle: String
  /// When it was accepted.
  package let time: UnixTime
  /// What names the push wherever it is repeated: `apns-id`, or the sender's own id in the message; nil where there is
  /// none.
  package let pushID: String?
  /// The request's own header fields, without pseudo fields and credentials.
  package let headers: [HeaderField]
  /// The payload exactly as sent.
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

  /// The payload as text.
  package var text: String { String(decoding: payload, as: UTF8.self) }

  /// The value of the first header field of that name, which is given in lower case.
  package func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name }?.value
  }
}
