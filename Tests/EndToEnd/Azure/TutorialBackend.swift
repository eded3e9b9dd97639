import FanfareCore
import Foundation
import Testing

/// The back end of Microsoft's tutorial "notify specific users", request by request as .NET's SDK sends them.
struct TutorialBackend: Sendable {
  /// A platform's words in the protocol.
  struct Dialect: Sendable {
    let platform: Platform
    /// `ServiceBusNotification-Format`.
    let format: String
    let description: String
    /// The element of the handle.
    let handle: String
    let contentType: String
    var headers: [(String, String)] = []

    static let all = [
      Dialect(
        platform: .wns, format: "windows", description: "WindowsRegistrationDescription", handle: "ChannelUri",
        contentType: "application/xml", headers: [("X-WNS-Type", "wns/toast")]),
      Dialect(
        platform: .apns, format: "apple", description: "AppleRegistrationDescription", handle: "DeviceToken",
        contentType: "application/json;charset=utf-8"),
      Dialect(
        platform: .fcm, format: "gcm", description: "GcmRegistrationDescription", handle: "GcmRegistrationId",
        contentType: "application/json;charset=utf-8"),
    ]

    /// The payload that the tutorial makes of a text.
    func payload(_ text: String) -> String {
      switch platform {
      case .wns:
        "<toast><visual><binding template=\"ToastText01\"><text id=\"1\">\(text)</text></binding></visual></toast>"
      case .apns: #"{"aps":{"alert":"\#(text)"}}"#
      case .fcm: #"{"data":{"message":"\#(text)"}}"#
      }
    }
  }

  let door: AzureDoor

  /// `POST api/register?handle=…` of the tutorial: the registration that has the handle, without the others; else an id.
  func registrationID(for handle: String) async throws -> String {
    let filter = AzureDoor.escaped("ChannelUri eq '\(handle)'").replacing("%20", with: "+")
    let list = try await door.send("GET", "/registrations/?$filter=\(filter)&$top=100")
    #expect(list.status == 200, "\(list.body)")
    #expect(list.headers["content-type"]?.contains("type=feed") == true)
    var ids = Self.texts("RegistrationId", in: list.body)
    if ids.isEmpty {
      let issued = try await door.send("POST", "/registrationids/")
      #expect(issued.status == 201, "\(issued.body)")
      return try issued.id()
    }
    let first = ids.removeFirst()
    for id in ids {
      let answer = try await door.send("DELETE", "/registrations/\(id)", headers: [("If-Match", "*")])
      #expect(answer.status == 200, "\(answer.body)")
    }
    return first
  }

  /// `PUT api/register/{id}`: create or update, with the tags that the tutorial adds to the app's.
  func register(
    _ id: String, _ handle: String, _ dialect: Dialect, user: String, tags: [String] = []
  ) async throws -> AzureDoor.Answer {
    let escaped = handle.replacing("&", with: "&amp;")
    let entry = """
      <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">\
      <\(dialect.description) xmlns:i="http://www.w3.org/2001/XMLSchema-instance" \
      xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">\
      <Tags>\((tags + ["username:\(user)"]).joined(separator: ","))</Tags>\
      <\(dialect.handle)>\(escaped)</\(dialect.handle)></\(dialect.description)></content></entry>
      """
    return try await door.send(
      "PUT", "/registrations/\(id)", headers: [("Content-Type", "application/atom+xml;type=entry;charset=utf-8")],
      body: entry)
  }

  /// `POST api/notifications?pns=…&to_tag=…`: a native send with the tutorial's two tags.
  func notify(_ text: String, _ dialect: Dialect, tags: [String]) async throws -> AzureDoor.Answer {
    try await door.send(
      "POST", "/messages",
      headers: [
        ("Content-Type", dialect.contentType), ("ServiceBusNotification-Format", dialect.format),
        ("ServiceBusNotification-Tags", tags.joined(separator: "||")),
      ] + dialect.headers, body: dialect.payload(text))
  }

  /// The texts of all elements of the name.
  static func texts(_ element: String, in xml: String) -> [String] {
    xml.components(separatedBy: "<\(element)>").dropFirst().compactMap { $0.components(separatedBy: "</").first }
  }
}
