/// All that is special about a platform, apart from its sender: names, handles, payloads and waits.
///
/// One type for each platform declares it; nothing else has a table of platforms. The article
/// "Add a platform" tells what a declaration is made of.
package protocol PlatformVocabulary: Sendable {
  /// The number in stored rows, 1 to 63. No two platforms ever have the same, and it never changes.
  static var code: UInt8 { get }
  /// The name in JSON, metrics and settings, in lower case.
  static var name: String { get }
  /// Other names that callers may give, in lower case.
  static var aliases: [String] { get }
  /// The name in sentences.
  static var title: String { get }
  /// The name of the system whose devices it reaches, in lower case.
  static var system: String { get }
  /// The member that holds the handle in an app's request, beside `handle`.
  static var handleMember: String { get }

  /// The form in which handles are stored and compared.
  static func normalized(handle: String) -> String
  /// The reason why a text of 1 to `DeviceHandle.maximumLength` bytes is no handle, as the end of an error message.
  static func problem(withHandle handle: String) -> String?
  /// A handle that no device has, to ask whether the service takes the hub's credentials.
  static var absentHandle: String { get }
  /// Whether a device may have further handles for secondary tiles.
  static var hasTiles: Bool { get }

  /// The most bytes in a payload, as documented by the service.
  static var payloadLimit: Int { get }
  /// The most bytes that a portable message may have before it is rendered to be checked.
  static var messageLimit: Int { get }
  /// The most bytes that a native payload may have when values are inserted into a template of it.
  static var templateLimit: Int { get }
  /// The form of a native payload.
  static var nativeForm: NativePayload.Form { get }
  /// The header fields that callers may give, with names in lower case. The service refuses or ignores others, or the
  /// sender alone may set them.
  static var headers: Set<String> { get }

  /// Whether the service reserves the key of a message's data.
  static func reserves(dataKey key: String) -> Bool
  /// Whether the service takes the collapse key.
  static func accepts(collapseKey key: String) -> Bool
  /// Throws if the service would refuse the content for every device.
  static func check(_ content: Content, collapseKey: String?) throws(ContentFault)
  /// Of a content whose payload is not known yet: throws if the service would refuse one of the header fields, or
  /// reserves a key of the data of the message, which is nil if there is a native payload.
  static func checkParts(of message: Message?, headers: [String: String]) throws(ContentFault)

  /// The payload that shows a text, for the tutorial apps.
  static func notice(_ text: String) -> NativePayload
  /// The payload that announces a secure payload without showing anything.
  static func announcement(of id: SecurePayloadID) -> NativePayload

  /// The delays after a refusal for which the service names none.
  static var refused: Backoff { get }
  /// The delays after 429 without a time; nil: as after any other refusal.
  static var throttled: Backoff? { get }

  /// The names that clients of Azure Notification Hubs know the platform by, at least one; of two the first is the
  /// older one.
  static var azure: [AzureKind] { get }
}

extension PlatformVocabulary {
  package static var aliases: [String] { [] }
  package static var handleMember: String { "deviceToken" }
  package static func normalized(handle: String) -> String { handle }
  package static var hasTiles: Bool { false }
  package static var messageLimit: Int { payloadLimit }
  package static var templateLimit: Int { payloadLimit }
  package static var nativeForm: NativePayload.Form { .json }
  package static var headers: Set<String> { [] }
  package static func reserves(dataKey key: String) -> Bool { false }
  package static func accepts(collapseKey key: String) -> Bool { true }
  package static var refused: Backoff { Backoff(first: .seconds(30), limit: .seconds(15 * 60)) }
  package static var throttled: Backoff? { nil }
  package static var azure: [AzureKind] {
    [AzureKind(name: title, installation: name, handleElement: "\(title)Handle", outcomes: title)]
  }

  package static func checkParts(of message: Message?, headers: [String: String]) throws(ContentFault) {
    for key in message?.data.keys.sorted() ?? [] where reserves(dataKey: key) {
      throw .reserved("message.data.\(key)", by: title)
    }
  }
}

/// A name by which clients of Azure Notification Hubs know a platform.
package struct AzureKind: Hashable, Sendable {
  /// In front of `RegistrationDescription`. In lower case it is the format of a send, and the name in results.
  package let name: String
  /// The `platform` of an installation.
  package let installation: String
  /// Other names for it that are read, in lower case.
  package let aliases: [String]
  /// The element of a registration that holds the handle.
  package let handleElement: String
  /// In front of `OutcomeCounts`.
  package let outcomes: String
  /// The element of a hub that holds the credential.
  package let credential: String?
  /// The member in which a body may have the payload; it is written for the newest name alone.
  package let envelope: String?

  package init(
    name: String, installation: String, aliases: [String] = [], handleElement: String, outcomes: String,
    credential: String? = nil, envelope: String? = nil
  ) {
    (self.name, self.installation, self.aliases, self.handleElement) = (name, installation, aliases, handleElement)
    (self.outcomes, self.credential, self.envelope) = (outcomes, credential, envelope)
  }
}
