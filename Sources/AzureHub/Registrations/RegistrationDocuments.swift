import Crypto
import FanfareCore

/// A registration with its id as a client knows it, for answers.
struct RegistrationEntry {
  /// The id in the path of the request, or the row's.
  let id: String
  let registration: Registration
  let description: RegistrationDescription

  /// `isOlder`: the client asks for a version that has no FcmV1.
  init(_ registration: Registration, id: String? = nil, isOlder: Bool) {
    self.id = id ?? registration.id.description
    self.registration = registration
    description = RegistrationDescription(registration, isOlder: isOlder)
  }

  /// A weak tag of the registration's present state: it changes with every write, and does not come back.
  var tag: String { Self.tag(of: registration) }

  static func tag(of registration: Registration) -> String {
    var content = JSONWriter.object(capacity: 512) { json in
      json.member("user", registration.user)
      json.member("platform", registration.platform)
      json.member("handle", registration.handle)
      json.member("tags", registration.tags)
      json.member("seenAt", registration.seenAt)
    }
    if let profile = registration.profile { content += JSONWriter.bytes(of: profile) }
    return Hexadecimal.text(SHA256.hash(data: content).prefix(8))
  }
}

/// The namespaces of Azure's documents.
enum XMLNamespace {
  static let atom = "http://www.w3.org/2005/Atom"
  static let metadata = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
  static let connect = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
  static let instance = "http://www.w3.org/2001/XMLSchema-instance"

  /// The attributes of a description.
  static let ofDescriptions = #" xmlns="\#(connect)" xmlns:i="\#(instance)""#
}

extension [UInt8] {
  /// Appends an element with text.
  mutating func appendElement(_ name: String, _ text: String) {
    self += "<\(name)>".utf8
    appendXML(text)
    self += "</\(name)>".utf8
  }

  /// Appends an element whose content `content` appends; `attributes` are written as they are.
  mutating func appendElement(_ name: String, attributes: String = "", _ content: (inout [UInt8]) -> Void) {
    self += "<\(name)\(attributes)>".utf8
    content(&self)
    self += "</\(name)>".utf8
  }
}

extension RegistrationEntry {
  /// The document of one registration. `link` makes the URL of an id.
  func document(link: (String) -> String) -> [UInt8] {
    var document: [UInt8] = []
    append(to: &document, link: link)
    return document
  }

  func append(to document: inout [UInt8], link: (String) -> String) {
    document.appendEntry(
      id: link(id), title: id, tag: tag, published: registration.createdAt, updated: registration.registeredAt
    ) { appendDescription(to: &$0) }
  }

  /// Appends the description in the order of .NET's data contract.
  func appendDescription(to document: inout [UInt8]) {
    let template = description.template
    let name = description.service.kind.name + (template == nil ? "" : "Template") + "RegistrationDescription"
    document.appendElement(name, attributes: XMLNamespace.ofDescriptions) { content in
      content.appendElement("ETag", tag)
      content.appendElement("ExpirationTime", registration.validUntil?.description ?? "9999-12-31T23:59:59.999")
      content.appendElement("RegistrationId", id)
      let tags = AzureTags.list(of: registration)
      if !tags.isEmpty { content.appendElement("Tags", tags.joined(separator: ",")) }
      if !description.pushVariables.isEmpty {
        let variables = JSONWriter.object { $0.members(sorted: description.pushVariables) }
        content.appendElement("PushVariables", String(decoding: variables, as: UTF8.self))
      }
      content.appendElement(
        description.service.kind.handleElement, description.service.azureForm(of: description.handle))
      if let tile = description.tile { content.appendElement(RegistrationDescription.tileElement, tile) }
      if let template {
        Self.append(template, AzureTemplate(template, form: description.form), of: description.service, to: &content)
      }
    }
  }

  private static func append(
    _ template: DeviceTemplate, _ form: AzureTemplate, of service: PushServiceName, to content: inout [UInt8]
  ) {
    content.appendElement("BodyTemplate", service.body(of: form.body))
    func append(headers: String, header: String, _ list: [(name: String, value: String)]) {
      guard !list.isEmpty else { return }
      content.appendElement(headers) { content in
        for field in list {
          content.appendElement(header) {
            $0.appendElement("Header", field.name)
            $0.appendElement("Value", field.value)
          }
        }
      }
    }
    if service.platform == .wns { append(headers: "WnsHeaders", header: "WnsHeader", form.namedHeaders()) }
    if service.platform == .apns, let expiry = form.expiry { content.appendElement("Expiry", expiry) }
    if !template.name.isEmpty { content.appendElement("TemplateName", template.name) }
    if service.platform == .apns {
      if let priority = form.priority { content.appendElement("Priority", priority) }
      append(headers: "ApnsHeaders", header: "ApnsHeader", form.namedHeaders(isElement: true))
    }
  }
}

extension [UInt8] {
  /// Appends an entry of Atom whose content `content` appends; `tag` is a weak tag of it.
  mutating func appendEntry(
    id: String, title: String, tag: String? = nil, published: UnixTime, updated: UnixTime,
    _ content: (inout [UInt8]) -> Void
  ) {
    var namespaces = #" xmlns="\#(XMLNamespace.atom)""#
    if let tag { namespaces = #" a:etag="W/&quot;\#(tag)&quot;"\#(namespaces) xmlns:a="\#(XMLNamespace.metadata)""# }
    appendElement("entry", attributes: namespaces) { entry in
      entry.appendElement("id", id)
      entry.appendElement("title", attributes: #" type="text""#) { $0.appendXML(title) }
      entry.appendElement("published", published.description)
      entry.appendElement("updated", updated.description)
      entry.appendLink(to: id)
      entry.appendElement("content", attributes: #" type="application/xml""#, content)
    }
  }

  /// Appends a feed of Atom whose entries `entries` appends.
  mutating func appendFeed(id: String, title: String, updated: UnixTime, _ entries: (inout [UInt8]) -> Void) {
    appendElement("feed", attributes: #" xmlns="\#(XMLNamespace.atom)""#) { feed in
      feed.appendElement("title", attributes: #" type="text""#) { $0.appendXML(title) }
      feed.appendElement("id", id)
      feed.appendElement("updated", updated.description)
      feed.appendLink(to: id)
      entries(&feed)
    }
  }

  private mutating func appendLink(to url: String) {
    self += #"<link rel="self" href=""#.utf8
    appendXML(url)
    self += #""/>"#.utf8
  }
}

extension JSONWriter {
  /// Writes members by ascending names.
  mutating func members(sorted values: [String: String]) {
    for (name, value) in values.sorted(by: { $0.key < $1.key }) { member(named: name, value) }
  }
}
