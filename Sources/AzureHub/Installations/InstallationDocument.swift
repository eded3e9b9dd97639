import FanfareCore

/// An installation as Azure's clients describe it: one handle, tags, a user, and any number of named templates; on
/// Windows also secondary tiles, each with a channel, tags and templates of its own.
struct InstallationDocument: Hashable, Sendable {
  /// The most templates of an installation or a tile.
  static let maximumTemplates = 50
  /// The most secondary tiles of an installation.
  static let maximumTiles = 20

  /// A template with the tags that it has besides the installation's.
  struct Template: Hashable, Sendable {
    var template: AzureTemplate
    var tags = AzureTags()
  }

  /// A secondary tile.
  struct Tile: Hashable, Sendable {
    var handle: String
    var tags = AzureTags()
    var templates: [String: Template] = [:]

    static func checked(name: String, field: String) throws(InvalidDescription) -> String {
      guard DeviceTemplate.isName(name) else {
        throw InvalidDescription("\(field) must have \(DeviceTemplate.nameRule)")
      }
      return name
    }
  }

  let id: String
  var service: PushServiceName
  var handle: String
  /// Without user and installation.
  var tags: AzureTags
  var user: String?
  var pushVariables: [String: String]
  var templates: [String: Template]
  var tiles: [String: Tile]
  /// When it ends unless the app renews it; nil: never.
  var validUntil: UnixTime?
  /// Language and time zone, which Azure does not have and a patch keeps.
  private var profile = DeviceProfile()

  /// Reads the body of a request for the installation of the path's id. Names of members are matched in any letter
  /// case; unknown ones are ignored, those that the server sets among them.
  init(_ body: ArraySlice<UInt8>, id: String) throws(InvalidDescription) {
    do throws(JSONError) {
      var reader = try JSONReader(body, refusesLoneSurrogates: true)
      try self.init(from: &reader, id: id)
      try reader.finish()
    } catch {
      throw InvalidDescription(error.description)
    }
  }

  private init(from reader: inout JSONReader, id: String) throws(JSONError) {
    var (service, handle, user): (PushServiceName?, String?, String?)
    var validUntil: UnixTime?
    var (tags, pushVariables): (AzureTags, [String: String]) = (AzureTags(), [:])
    // Templates and tiles need the platform, which may follow.
    var (rawTemplates, rawTiles): (ArraySlice<UInt8>?, ArraySlice<UInt8>?)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key.text.lowercased() {
      case "installationid":
        guard try reader.readOptionalString() ?? id == id else { throw reader.error("must be the id of the path") }
      case "platform":
        let name = try reader.readString()
        service = try describing { () throws(InvalidDescription) in try PushServiceName(ofInstallation: name) }
      case "pushchannel":
        guard try reader.nextKind() != .object else {
          throw reader.error("must be a string; browsers are not supported")
        }
        handle = try reader.readOptionalString()
      case "userid": user = try reader.readOptionalString()
      case "tags": tags = try reader.readAzureTags()
      case "expirationtime":
        let text = try reader.readOptionalString()
        validUntil = try describing { () throws(InvalidDescription) in
          try Self.end(text, field: "expirationTime")
        }
      case "pushvariables":
        if try !reader.readNull() {
          pushVariables = try reader.readTemplateValues(maximum: DeviceProfile.maximumAttributes)
        }
      case "templates": if try !reader.readNull() { rawTemplates = try reader.readRaw() }
      case "secondarytiles": if try !reader.readNull() { rawTiles = try reader.readRaw() }
      default: try reader.skipValue()
      }
    }
    guard let service else { throw JSONError(field: "platform", problem: "is missing") }
    (self.id, self.service, self.tags, self.pushVariables) = (id, service, tags, pushVariables)
    self.validUntil = validUntil
    self.user = user.flatMap { $0.isEmpty ? nil : $0 } ?? tags.user
    self.handle = try describing { () throws(InvalidDescription) in
      try service.checked(handle: handle, field: "pushChannel")
    }
    (templates, tiles) = ([:], [:])
    if let rawTemplates {
      templates = try Self.within("templates") { () throws(JSONError) in
        try Self.readTemplates(rawTemplates, on: service.platform)
      }
    }
    if let rawTiles {
      tiles = try Self.within("secondaryTiles") { () throws(JSONError) in try Self.readTiles(rawTiles, of: service) }
    }
  }

  /// Reads the end of an installation. The last moment that Azure's clients can write means that there is none.
  static func end(_ text: String?, field: String) throws(InvalidDescription) -> UnixTime? {
    guard let text = text?.trimmingSpace, !text.isEmpty else { return nil }
    guard let time = AzureTime.read(text) else {
      throw InvalidDescription("\(field) must be a date and time such as 2030-01-02T03:04:05Z")
    }
    return time >= endless ? nil : time
  }

  /// 9999-12-31T00:00:00Z
  private static let endless = UnixTime(milliseconds: 253_402_214_400_000)

  /// Reads a member whose errors name parts of it.
  private static func within<Value>(
    _ member: String, _ read: () throws(JSONError) -> Value
  ) throws(JSONError) -> Value {
    do throws(JSONError) { return try read() } catch {
      throw JSONError(field: error.field.isEmpty ? member : "\(member).\(error.field)", problem: error.problem)
    }
  }

  /// Reads `{"name":{"body":…,"headers":{…},"expiry":…,"tags":[…]}}`.
  static func readTemplates(
    _ json: ArraySlice<UInt8>, on platform: Platform
  ) throws(JSONError) -> [String: Template] {
    var templates: [String: Template] = [:]
    var reader = try JSONReader(json, refusesLoneSurrogates: true)
    try reader.readObject { (key, reader) throws(JSONError) in
      guard templates.updateValue(try reader.readAzureTemplate(on: platform), forKey: key.text) == nil else {
        throw reader.duplicateMember()
      }
    }
    try reader.finish()
    return templates
  }

  /// Reads `{"name":{"pushChannel":…,"tags":[…],"templates":{…}}}`.
  static func readTiles(_ json: ArraySlice<UInt8>, of service: PushServiceName) throws(JSONError) -> [String: Tile] {
    var tiles: [String: Tile] = [:]
    var reader = try JSONReader(json, refusesLoneSurrogates: true)
    try reader.readObject { (key, reader) throws(JSONError) in
      let name = key.text
      try describing { () throws(InvalidDescription) in _ = try Tile.checked(name: name, field: "the name") }
      guard tiles.updateValue(try reader.readAzureTile(of: service), forKey: name) == nil else {
        throw reader.duplicateMember()
      }
    }
    try reader.finish()
    return tiles
  }

  /// Describes the rows of an installation: its own, and those of its templates and tiles.
  init(id: String, device: Registration, parts rows: [Registration], isOlder: Bool) {
    self.id = id
    service = PushServiceName(device.platform, device.profile?.azure ?? [:], isOlder: isOlder)
    (handle, validUntil) = (device.handle, device.validUntil)
    user = UserName.isOfDevice(device.user) ? nil : device.user
    tags = AzureTags(ofRow: device.tags)
    profile = device.profile ?? DeviceProfile()
    pushVariables = profile.attributes
    templates = [:]
    for row in rows where row.profile?.tile == nil {
      guard let template = row.profile?.template else { continue }
      templates[template.name] = Template(
        template: AzureTemplate(template, form: row.profile?.azure ?? [:]),
        tags: AzureTags(ofRow: row.tags.filter { !device.tags.contains($0) }))
    }
    tiles = [:]
    for row in rows where row.profile?.template == nil {
      guard let name = row.profile?.tile else { continue }
      var tile = Tile(handle: row.handle, tags: AzureTags(ofRow: row.tags))
      for other in rows where other.profile?.tile == name {
        guard let template = other.profile?.template else { continue }
        tile.templates[template.name] = Template(
          template: AzureTemplate(template, form: other.profile?.azure ?? [:]),
          tags: AzureTags(ofRow: other.tags.filter { !row.tags.contains($0) }))
      }
      tiles[name] = tile
    }
  }

  /// The request to the registry, which makes the name of a template a tag of it, as Azure does.
  func request(in hub: HubName, at now: UnixTime) throws(InvalidDescription) -> DeviceRequest {
    guard Tag.isInstallation(id) else {
      throw InvalidDescription("the installation's id must be \(Tag.installationRule)")
    }
    if let user, !UserName.isValid(user) { throw InvalidDescription("userId must be \(UserName.rule)") }
    try requireOwn(tags, field: "tags")
    guard validUntil.map({ $0 > now }) ?? true else { throw InvalidDescription("expirationTime must be in the future") }
    var profile = profile
    (profile.attributes, profile.azure) = (pushVariables, service.form)
    return DeviceRequest(
      installation: id, hub: hub, user: user ?? UserName.ofDevice(RegistrationID(azure: id)),
      platform: service.platform, handle: handle, tags: tags.tags, profile: profile.isEmpty ? nil : profile,
      templates: try rows(of: templates, profile, field: "templates"), tiles: try rows(ofTiles: profile),
      validUntil: validUntil, isTrusted: true)
  }

  /// The templates of the installation or of a tile. `field` names them in errors.
  private func rows(
    of templates: [String: Template], _ profile: DeviceProfile, field: String
  ) throws(InvalidDescription) -> [DeviceRequest.Template] {
    guard templates.count <= Self.maximumTemplates else {
      throw InvalidDescription("\(field) must be at most \(Self.maximumTemplates)")
    }
    var rows: [DeviceRequest.Template] = []
    for (name, entry) in templates.sorted(by: { $0.key < $1.key }) {
      guard !name.isEmpty else { throw InvalidDescription("\(field) must have names") }
      let template = try entry.template.checked(name: name, on: service.platform, field: "\(field).\(name).body")
      var profile = profile
      profile.template = template
      profile.azure.merge(entry.template.form) { $1 }
      guard JSONWriter.bytes(of: profile).count <= DeviceProfile.maximumLength else {
        throw InvalidDescription(
          "\(field).\(name) and pushVariables together must have at most \(DeviceProfile.maximumLength) bytes")
      }
      try requireOwn(entry.tags, field: "\(field).\(name).tags")
      rows.append(DeviceRequest.Template(template, tags: entry.tags.tags, azure: entry.template.form))
    }
    return rows
  }

  private func requireOwn(_ tags: AzureTags, field: String) throws(InvalidDescription) {
    if let named = tags.user, named != user {
      throw InvalidDescription("\(field) must not name another user than userId")
    }
    if let installation = tags.installation, installation != id {
      throw InvalidDescription("\(field) must not name another installation")
    }
  }

  private func rows(ofTiles profile: DeviceProfile) throws(InvalidDescription) -> [DeviceRequest.Tile] {
    guard tiles.count <= Self.maximumTiles else {
      throw InvalidDescription("secondaryTiles must be at most \(Self.maximumTiles)")
    }
    var handles: Set<String> = [handle]
    var rows: [DeviceRequest.Tile] = []
    for (name, tile) in tiles.sorted(by: { $0.key < $1.key }) {
      let field = "secondaryTiles.\(name)"
      guard handles.insert(tile.handle).inserted else {
        throw InvalidDescription("\(field).pushChannel must be a channel of its own")
      }
      try requireOwn(tile.tags, field: "\(field).tags")
      var profile = profile
      profile.tile = name
      rows.append(
        DeviceRequest.Tile(
          name, handle: tile.handle, tags: tile.tags.tags,
          templates: try self.rows(of: tile.templates, profile, field: "\(field).templates")))
    }
    return rows
  }

  /// The installation as JSON. Members without a value are left out.
  func json(seenAt: UnixTime) -> [UInt8] {
    JSONWriter.object(capacity: 512) { json in
      json.member("installationId", id)
      json.member("pushChannel", service.azureForm(of: handle))
      json.member("pushChannelExpired", false)
      json.member("platform", service.kind.installation)
      json.member("userId", ifPresent: user)
      json.member("expirationTime", validUntil?.description ?? "9999-12-31T23:59:59.9999999Z")
      json.member("lastUpdate", seenAt)
      if !tags.tags.isEmpty { json.member("tags", tags.tags) }
      if !pushVariables.isEmpty { json.object("pushVariables") { $0.members(sorted: pushVariables) } }
      write(templates, to: &json)
      guard !tiles.isEmpty else { return }
      json.object("secondaryTiles") { json in
        for (name, tile) in tiles.sorted(by: { $0.key < $1.key }) {
          json.object(named: name) { json in
            json.member("pushChannel", tile.handle)
            json.member("pushChannelExpired", false)
            if !tile.tags.tags.isEmpty { json.member("tags", tile.tags.tags) }
            write(tile.templates, to: &json)
          }
        }
      }
    }
  }

  private func write(_ templates: [String: Template], to json: inout JSONWriter) {
    guard !templates.isEmpty else { return }
    json.object("templates") { json in
      for (name, entry) in templates.sorted(by: { $0.key < $1.key }) {
        json.object(named: name) { json in
          json.member("body", service.body(of: entry.template.body))
          let headers = entry.template.namedHeaders()
          if !headers.isEmpty {
            json.object("headers") { json in for header in headers { json.member(named: header.name, header.value) } }
          }
          json.member("expiry", ifPresent: entry.template.expiry)
          if !entry.tags.tags.isEmpty { json.member("tags", entry.tags.tags) }
        }
      }
    }
  }
}

/// Runs a check whose error names the field itself.
private func describing<Value>(_ check: () throws(InvalidDescription) -> Value) throws(JSONError) -> Value {
  do throws(InvalidDescription) { return try check() } catch {
    throw JSONError(field: "", problem: error.description)
  }
}

extension JSONReader {
  /// Reads a string, or nil for `null`.
  fileprivate mutating func readOptionalString() throws(JSONError) -> String? {
    try readNull() ? nil : try readString()
  }

  /// Reads an array of tags in Azure's form, or an empty list for `null`.
  fileprivate mutating func readAzureTags() throws(JSONError) -> AzureTags {
    var tags = AzureTags()
    if try readNull() { return tags }
    try readArray { (reader) throws(JSONError) in
      let tag = try reader.readString()
      try describing { () throws(InvalidDescription) in try tags.add(tag, field: "tags") }
    }
    return tags
  }

  /// Reads a secondary tile of an installation.
  mutating func readAzureTile(of service: PushServiceName) throws(JSONError) -> InstallationDocument.Tile {
    guard service.platform.vocabulary.hasTiles else { throw error("belongs to installations with the platform wns") }
    var (handle, tags): (String?, AzureTags) = (nil, AzureTags())
    var templates: [String: InstallationDocument.Template] = [:]
    try readObject { (key, reader) throws(JSONError) in
      switch key.text.lowercased() {
      case "pushchannel": handle = try reader.readOptionalString()
      case "tags": tags = try reader.readAzureTags()
      case "templates":
        if try reader.readNull() { return }
        try reader.readObject { (name, reader) throws(JSONError) in
          let template = try reader.readAzureTemplate(on: service.platform)
          guard templates.updateValue(template, forKey: name.text) == nil else { throw reader.duplicateMember() }
        }
      default: try reader.skipValue()
      }
    }
    let channel = handle
    return InstallationDocument.Tile(
      handle: try describing { () throws(InvalidDescription) in
        try service.checked(handle: channel, field: "pushChannel")
      }, tags: tags, templates: templates)
  }

  /// Reads a template of an installation.
  mutating func readAzureTemplate(on platform: Platform) throws(JSONError) -> InstallationDocument.Template {
    var result = InstallationDocument.Template(template: AzureTemplate(body: ""))
    try readObject { (key, reader) throws(JSONError) in
      switch key.text.lowercased() {
      case "body": result.template.body = try reader.readString()
      case "headers":
        if try reader.readNull() { return }
        try reader.readObject { (name, reader) throws(JSONError) in
          let (name, value) = (name.text, try reader.readString())
          do throws(InvalidDescription) { try result.template.set(name, to: value, on: platform) } catch {
            throw reader.error("is not valid: \(error)")
          }
        }
      case "expiry":
        let text = try reader.readOptionalString()
        try describing { () throws(InvalidDescription) in
          try result.template.setExpiry(text, on: platform, field: "expiry")
        }
      case "tags": result.tags = try reader.readAzureTags()
      default: try reader.skipValue()
      }
    }
    return result
  }
}
