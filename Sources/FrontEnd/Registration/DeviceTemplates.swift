import FanfareCore

extension DeviceRequest {
  /// The most templates of an installation; each is a registration of its own.
  static let maximumTemplates = 100
}

/// An installation with its templates, as it is stored.
struct Installation {
  let registration: Registration
  let templates: [DeviceRequest.Template]
  /// Which clients of Azure Notification Hubs give it.
  let tiles: [DeviceRequest.Tile]

  /// Nil without a registration of its own, which is the first one; the others are templates and tiles.
  init?(_ registrations: [Registration]) {
    guard let first = registrations.first, !first.isPart else { return nil }
    registration = first
    tiles = DeviceRequest.Tile.all(in: registrations)
    let shared = Set(first.tags)
    templates = registrations.dropFirst().compactMap { row in
      guard row.profile?.tile == nil else { return nil }
      return row.profile?.template.map { template in
        // The registry adds the template's name.
        DeviceRequest.Template(
          template, tags: row.tags.filter { !shared.contains($0) && $0 != template.name },
          azure: row.profile?.azure ?? [:])
      }
    }
  }

  init(_ registration: Registration, _ templates: [DeviceRequest.Template]) {
    (self.registration, self.templates, tiles) = (registration, templates, [])
  }

  /// The registration as a JSON object, with the templates.
  var json: [UInt8] {
    JSONWriter.object(capacity: 512) {
      registration.writeMembers(to: &$0)
      guard !templates.isEmpty else { return }
      $0.object("templates") { json in
        for item in templates.sorted(by: { $0.template.name < $1.template.name }) {
          json.object(named: item.template.name) {
            $0.member("body", item.template.body)
            if !item.template.headers.isEmpty { $0.member("headers", sorted: item.template.headers) }
            if !item.tags.isEmpty { $0.member("tags", item.tags) }
          }
        }
      }
    }
  }
}

extension JSONReader {
  /// Reads an installation's templates by name: `{"goal":{"body":"…","headers":{…},"tags":[…]}}`.
  mutating func readDeviceTemplates() throws(JSONError) -> [DeviceRequest.Template] {
    var templates: [DeviceRequest.Template] = []
    try readObject { (key, reader) throws(JSONError) in
      let name = key.text
      guard DeviceTemplate.isName(name) else { throw reader.error("must have a name of \(DeviceTemplate.nameRule)") }
      guard !templates.contains(where: { $0.template.name == name }) else { throw reader.duplicateMember() }
      guard templates.count < DeviceRequest.maximumTemplates else {
        throw reader.error("is one template more than the \(DeviceRequest.maximumTemplates) allowed")
      }
      templates.append(try reader.readDeviceTemplate(named: name))
    }
    return templates
  }

  /// Reads one template: `{"body":"…","headers":{…},"tags":[…]}`.
  mutating func readDeviceTemplate(named name: String) throws(JSONError) -> DeviceRequest.Template {
    var (body, headers, tags): (String?, [String: String]?, [String]?)
    try readObject { (key, reader) throws(JSONError) in
      switch key {
      case "body":
        guard body == nil else { throw reader.duplicateMember() }
        body = try reader.readString()
      case "headers":
        guard headers == nil else { throw reader.duplicateMember() }
        headers = try PushHeader.read(from: &reader)
      case "tags":
        guard tags == nil else { throw reader.duplicateMember() }
        tags = try reader.readTags()
      default: throw reader.error("is not a known member")
      }
    }
    guard let body else { throw error("must have a body") }
    return DeviceRequest.Template(
      DeviceTemplate(name: name, body: body, headers: headers ?? [:]), tags: tags ?? [])
  }
}

extension DeviceTemplate {
  /// Throws an error that names a part of `member`; see `check(on:)`.
  func check(on platform: Platform, as member: String) throws(JSONError) {
    // Errors name the template's part as that of a native payload.
    func part(_ field: String) -> String {
      field.replacing("native.\(platform)", with: "body").replacing("native.headers", with: "headers")
    }
    do throws(Fault) { try check(on: platform) } catch {
      switch error {
      case .header(let name):
        throw JSONError(field: "\(member).headers.\(name)", problem: "does not belong to this platform")
      case .template(var error):
        error.field = part(error.field)
        throw JSONError(error, in: member)
      case .content(let fault): throw JSONError(field: "\(member).\(part(fault.field))", problem: fault.problem)
      }
    }
  }
}

extension DeviceProfile {
  /// Throws an error if the profile is too large.
  func check() throws(JSONError) {
    guard JSONWriter.bytes(of: self).count <= Self.maximumLength else {
      throw JSONError(
        field: template == nil ? "attributes" : "template",
        problem: "makes the device's data larger than \(Self.maximumLength) bytes")
    }
  }
}
