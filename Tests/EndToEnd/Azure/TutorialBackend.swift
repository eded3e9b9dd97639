import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// The back end of Microsoft's tutorial "notify specific users", request by request as .NET's SDK sends them.
struct TutorialBackend: Sendable {
  let door: AzureDoor

  /// `POST api/register?handle=…` of the tutorial: the registration that has the handle, without the others; else an
  /// id.
  func registrationID(for handle: String) async throws -> String {
    let filter = AzureClient.escaped("ChannelUri eq '\(handle)'").replacing("%20", with: "+")
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
    _ id: String, _ handle: String, _ dialect: AzureDialect, user: String, tags: [String] = []
  ) async throws -> AzureDoor.Answer {
    try await door.send(
      "PUT", "/registrations/\(id)", headers: [AzureDialect.entryType],
      body: dialect.entry(handle, tags: tags + ["username:\(user)"]))
  }

  /// `POST api/notifications?pns=…&to_tag=…`: a native send with the tutorial's two tags.
  func notify(_ text: String, _ dialect: AzureDialect, tags: [String]) async throws -> AzureDoor.Answer {
    try await door.send("POST", "/messages", headers: dialect.headers(to: tags), body: dialect.payload(text))
  }

  /// The texts of all elements of the name.
  static func texts(_ element: String, in xml: String) -> [String] {
    xml.components(separatedBy: "<\(element)>").dropFirst().compactMap { $0.components(separatedBy: "</").first }
  }
}
