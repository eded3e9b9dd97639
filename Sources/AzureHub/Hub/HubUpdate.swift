package import FanfareCore
import FrontEnd

/// Replaces the credentials with which a hub pushes. Called by `HubRoutes`; the program knows where they are kept.
package protocol HubCredentialStore: Sendable {
  /// Stores those of the credentials that differ from the present ones. Returns the platforms of these.
  ///
  /// Throws a `Refusal` that names a property which is wrong (400) or cannot be changed (409); then nothing changes.
  func replace(_ credentials: [HubCredential]) async throws -> [Platform]

  /// The public properties of the credentials: ids and names, which a client compares. Unreadable ones are left out.
  func identities() async -> [HubCredential]
}

/// The credential of a push service in a hub's description. It has secrets, and therefore no description of its own.
package struct HubCredential: Sendable, CustomStringConvertible {
  package let platform: Platform
  /// The element's name, for errors.
  package let name: String
  /// The values that are not empty, by the properties' names in lower case.
  package let values: [String: String]

  package init(_ platform: Platform, name: String, _ values: [String: String]) {
    (self.platform, self.name, self.values) = (platform, name, values)
  }

  package subscript(_ property: String) -> String? { values[property.lowercased()] }

  /// The properties of the names that have a value, in the order of the names.
  func properties(_ names: [String]) -> [(name: String, value: String)] {
    names.compactMap { name in self[name].map { (name, $0) } }
  }

  package var description: String { name }
}

/// A request to change a hub: the credentials in its description.
struct HubUpdate {
  /// The elements of credentials, and their platforms.
  private static let kinds = Platform.allCases.flatMap { platform in
    platform.vocabulary.azure.compactMap { kind in kind.credential.map { (element: $0, platform: platform) } }
  }
  /// Elements that Azure itself sets.
  private static let ignored: Set<String> = [
    "DailyOperations", "DailyMaxActiveDevices", "DailyMaxActiveRegistrations", "Path", "Name",
  ]
  /// The most bytes of a property.
  private static let maximumLength = 16_384

  let credentials: [HubCredential]

  /// Reads an entry of Atom or a description by itself. Throws a refusal that names an element which cannot be changed.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    let document: XMLTree
    do throws(XMLError) { document = try XMLTree(body) } catch { throw Refusal(.malformedBody, error.description) }
    let description = document.name == "entry" ? document.child("content")?.children.first : document
    guard let description, description.name == "NotificationHubDescription" else {
      throw Refusal(.malformedBody, "The body must be a NotificationHubDescription.")
    }
    var credentials: [HubCredential] = []
    for element in description.children where !element.isNothing && !Self.ignored.contains(element.name) {
      if let platform = Self.kinds.first(where: { $0.element == element.name })?.platform {
        guard !credentials.contains(where: { $0.platform == platform }) else {
          throw Refusal(.invalidField, "\(element.name) is given twice")
        }
        credentials.append(HubCredential(platform, name: element.name, try Self.properties(of: element)))
      } else if element.name != "RegistrationTtl" || element.text.trimmingSpace != HubDescription.unlimited {
        throw Refusal(
          .invalidField,
          "\(element.name) cannot be changed here; \(Self.kinds.map(\.element).series("and")) can")
      }
    }
    self.credentials = credentials
  }

  private static func properties(of credential: XMLTree) throws(Refusal) -> [String: String] {
    var values: [String: String] = [:]
    for property in credential.child("Properties")?.children ?? [] where property.name == "Property" {
      guard let name = property.value("Name")?.trimmingSpace, !name.isEmpty, name.utf8.count <= 64,
        name.utf8.allSatisfy(\.isLetterOrDigit)
      else { throw Refusal(.invalidField, "\(credential.name) has a property without a valid name") }
      guard let value = property.value("Value")?.trimmingSpace, !value.isEmpty, value != XMLTree.null else { continue }
      guard value.utf8.count <= maximumLength else {
        throw Refusal(.invalidField, "\(credential.name).\(name) must have at most \(maximumLength) bytes")
      }
      guard values.updateValue(value, forKey: name.lowercased()) == nil else {
        throw Refusal(.invalidField, "\(credential.name).\(name) is given twice")
      }
    }
    return values
  }
}

extension XMLTree {
  /// The text that Java's client writes for a value that it does not have.
  fileprivate static let null = "null"

  /// Whether the element says nothing: it is marked `nil`, or there is no text in it.
  fileprivate var isNothing: Bool {
    let text = text.trimmingSpace
    return attributes["nil"] == "true" || (text.isEmpty || text == Self.null) && children.allSatisfy(\.isNothing)
  }
}
