import FanfareCore

/// A registration as Azure's clients describe it: one handle, tags, and at most one template. On Windows the handle may
/// be the channel of a secondary tile.
struct RegistrationDescription: Hashable, Sendable {
  var service: PushServiceName
  var handle: String
  var tags: AzureTags
  var pushVariables: [String: String]
  var template: DeviceTemplate?
  /// The form in which the client gave it, as far as the other members do not show it.
  var form: [String: String]
  /// The name of the secondary tile.
  var tile: String?
  /// The id that an import's line carries.
  var id: String?

  /// Reads an entry of Atom, or a description by itself. Elements may be in any order; unknown ones are ignored.
  init(_ document: XMLTree) throws(InvalidDescription) {
    let description: XMLTree
    if document.name == "entry" {
      guard let content = document.child("content")?.children.first else {
        throw InvalidDescription("the entry must have a content with a registration's description")
      }
      description = content
    } else {
      description = document
    }
    var type = description.name
    if type == "RegistrationDescription" {
      guard let named = description.attributes["type"] else {
        throw InvalidDescription("RegistrationDescription must have an attribute type")
      }
      type = named.split(separator: ":").last.map(String.init) ?? named
    }
    let (suffix, templateSuffix) = ("RegistrationDescription", "TemplateRegistrationDescription")
    guard type.hasSuffix(suffix) else { throw InvalidDescription("the specified resource description is invalid") }
    let isTemplate = type.hasSuffix(templateSuffix)
    service = try PushServiceName(
      ofRegistration: String(type.dropLast((isTemplate ? templateSuffix : suffix).count)))
    let element = service.kind.handleElement
    handle = try service.checked(handle: description.value(element), field: element)
    if service.platform.vocabulary.hasTiles, let name = description.value(Self.tileElement)?.trimmingSpace,
      !name.isEmpty
    {
      tile = try InstallationDocument.Tile.checked(name: name, field: Self.tileElement)
    }
    tags = try AzureTags(list: description.value("Tags") ?? "", field: "Tags")
    pushVariables = try Self.pushVariables(description.value("PushVariables"))
    form = service.form
    if isTemplate {
      let given = try Self.template(description, on: service.platform)
      let name = description.value("TemplateName")?.trimmingSpace ?? ""
      template = try given.checked(name: name, on: service.platform, field: "BodyTemplate")
      form.merge(given.form) { $1 }
    }
    id = description.value("RegistrationId").map(\.trimmingSpace).flatMap { $0.isEmpty ? nil : $0 }
    guard JSONWriter.bytes(of: profile).count <= DeviceProfile.maximumLength else {
      throw InvalidDescription(
        "template and PushVariables together must have at most \(DeviceProfile.maximumLength) bytes")
    }
  }

  /// Describes a row.
  init(_ registration: Registration, isOlder: Bool) {
    form = registration.profile?.azure ?? [:]
    service = PushServiceName(registration.platform, form, isOlder: isOlder)
    handle = registration.handle
    tags = AzureTags()
    pushVariables = registration.profile?.attributes ?? [:]
    template = registration.profile?.template
    tile = registration.profile?.tile
    id = registration.id.description
  }

  static let tileElement = "SecondaryTileName"

  private var profile: DeviceProfile {
    DeviceProfile(template: template, attributes: pushVariables, tile: tile, azure: form)
  }

  private static func pushVariables(_ text: String?) throws(InvalidDescription) -> [String: String] {
    guard let text, !text.trimmingSpace.isEmpty else { return [:] }
    do throws(JSONError) {
      var reader = try JSONReader(Array(text.utf8)[...], refusesLoneSurrogates: true)
      let values = try reader.readTemplateValues(maximum: DeviceProfile.maximumAttributes)
      try reader.finish()
      return values
    } catch {
      throw InvalidDescription("PushVariables: \(error)")
    }
  }

  private static func template(
    _ description: XMLTree, on platform: Platform
  ) throws(InvalidDescription) -> AzureTemplate {
    var template = AzureTemplate(body: description.value("BodyTemplate") ?? "")
    for (list, item) in [("WnsHeaders", "WnsHeader"), ("ApnsHeaders", "ApnsHeader")] {
      for header in description.child(list)?.children ?? [] where header.name == item {
        guard let name = header.value("Header"), let value = header.value("Value") else {
          throw InvalidDescription("\(item) must have a Header and a Value")
        }
        try template.set(name.trimmingSpace, to: value.trimmingSpace, on: platform)
      }
    }
    if let expiry = description.value("Expiry") {
      try template.setExpiry(expiry, on: platform, field: "Expiry")
    }
    if let priority = description.value("Priority")?.trimmingSpace, !priority.isEmpty {
      try template.setPriority(priority, on: platform)
    }
    return template
  }

  /// The request to the registry. A device without a user gets one of its own, and so does an installation.
  func request(id: RegistrationID, hub: HubName) -> DeviceRequest {
    let owner = tags.installation.map { RegistrationID(azure: $0) } ?? id
    return DeviceRequest(
      id: id, hub: hub, user: tags.user ?? UserName.ofDevice(owner), platform: service.platform, handle: handle,
      tags: tags.tags + (tags.installation.map { [Tag.installationPrefix + $0] } ?? []),
      profile: profile.isEmpty ? nil : profile, isTrusted: true)
  }
}
