import FanfareCore

/// The words of Azure's protocol for a platform, and requests as .NET's SDK writes them.
struct AzureDialect: Sendable {
  let platform: Platform
  /// `ServiceBusNotification-Format`.
  let format: String
  /// The element of a registration.
  let description: String
  /// The element of the handle.
  let handle: String
  let contentType: String
  var headers: [(String, String)] = []

  static let all = [
    AzureDialect(
      platform: .wns, format: "windows", description: "WindowsRegistrationDescription", handle: "ChannelUri",
      contentType: "application/xml", headers: [("X-WNS-Type", "wns/toast")]),
    AzureDialect(
      platform: .apns, format: "apple", description: "AppleRegistrationDescription", handle: "DeviceToken",
      contentType: "application/json;charset=utf-8"),
    AzureDialect(
      platform: .fcm, format: "gcm", description: "GcmRegistrationDescription", handle: "GcmRegistrationId",
      contentType: "application/json;charset=utf-8"),
  ]

  /// The type of an entry.
  static let entryType = ("Content-Type", "application/atom+xml;type=entry;charset=utf-8")

  /// The payload that Microsoft's tutorial makes of a text.
  func payload(_ text: String) -> String {
    switch platform {
    case .wns:
      "<toast><visual><binding template=\"ToastText01\"><text id=\"1\">\(text)</text></binding></visual></toast>"
    case .apns: #"{"aps":{"alert":"\#(text)"}}"#
    default: #"{"data":{"message":"\#(text)"}}"#
    }
  }

  /// The headers of a native send to the devices with any of the tags.
  func headers(to tags: [String]) -> [(String, String)] {
    [
      ("Content-Type", contentType), ("ServiceBusNotification-Format", format),
      ("ServiceBusNotification-Tags", tags.joined(separator: "||")),
    ] + headers
  }

  /// The entry of a registration.
  func entry(_ device: String, tags: [String]) -> String {
    """
    <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">\
    <\(description) xmlns:i="http://www.w3.org/2001/XMLSchema-instance" \
    xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">\
    <Tags>\(tags.joined(separator: ","))</Tags>\
    <\(handle)>\(device.replacing("&", with: "&amp;"))</\(handle)></\(description)></content></entry>
    """
  }
}
