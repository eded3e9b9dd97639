/// The rules of handles: the addresses that push services give to devices.
package enum DeviceHandle {
  /// The most bytes of any handle.
  package static let maximumLength = 2048

  /// The form handles are stored and compared in: APNs tokens are hexadecimal and equal whatever the letter case,
  /// others are compared exactly.
  package static func normalized(_ handle: String, platform: Platform) -> String {
    platform == .apns ? handle.lowercased() : handle
  }

  /// Why the text cannot be a handle on the platform, as the end of an error message; nil when it can.
  ///
  /// APNs: an even number of 2…400 hexadecimal digits, no fixed length. FCM: visible ASCII. WNS: `https` on a host of
  /// `notify.windows.com` and no user info or port but 443, for every push to it carries our bearer token.
  package static func problem(with handle: String, platform: Platform) -> String? {
    guard !handle.isEmpty else { return "must not be empty" }
    guard handle.utf8.count <= maximumLength else { return "must have at most \(maximumLength) bytes" }
    switch platform {
    case .apns:
      return isHexadecimal(handle) && handle.utf8.count % 2 == 0 && handle.utf8.count <= 400
        ? nil : "must be an even number of 2 to 400 hexadecimal digits"
    case .fcm:
      return isVisible(handle) ? nil : "must be visible ASCII without spaces"
    case .wns:
      return ChannelURI(handle) == nil ? "must be an https URL on a host of notify.windows.com" : nil
    }
  }

  private static func isVisible(_ text: String) -> Bool {
    let bytes = text.utf8Span.span
    var others: UInt8 = 0
    for index in bytes.indices { others |= bytes[index] &- 0x21 < 0x5E ? 0 : 1 }
    return others == 0
  }

  private static func isHexadecimal(_ text: String) -> Bool {
    // Asked for every push: a span is read several times as fast as the string's own view, and a loop without branches
    // as vectors.
    let bytes = text.utf8Span.span
    var others: UInt8 = 0
    for index in bytes.indices {
      let isDigit = bytes[index] &- UInt8(ascii: "0") < 10
      let isLetter = (bytes[index] | 0x20) &- UInt8(ascii: "a") < 6
      others |= isDigit != isLetter ? 0 : 1
    }
    return others == 0
  }
}
