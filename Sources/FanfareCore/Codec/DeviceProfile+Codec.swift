extension DeviceProfile: JSONWritable {
  /// Writes the members that have a value.
  package func writeMembers(to json: inout JSONWriter) {
    json.member("template", ifPresent: template)
    json.member("locale", ifPresent: locale)
    json.member("timeZone", ifPresent: timeZone)
    if !attributes.isEmpty { json.member("attributes", sorted: attributes) }
    json.member("tile", ifPresent: tile)
    if !azure.isEmpty { json.member("azure", sorted: azure) }
  }

  /// Writes the profile as it is stored. Equal profiles have equal bytes.
  package func write(to json: inout JSONWriter) { json.object { writeMembers(to: &$0) } }

  /// Reads a profile as it is stored.
  package static func read(_ bytes: ArraySlice<UInt8>) throws(JSONError) -> DeviceProfile {
    var profile = DeviceProfile()
    var reader = try JSONReader(bytes)
    try reader.readObject { (key, reader) throws(JSONError) in
      if try !profile.readStoredMember(key, from: &reader) { try reader.skipValue() }
    }
    try reader.finish()
    return profile
  }

  /// Reads one member, `tile` and `azure` included, which apps do not give in this form. Otherwise like `readMember`.
  package mutating func readStoredMember(
    _ key: JSONReader.Key, from reader: inout JSONReader
  ) throws(JSONError) -> Bool {
    switch key {
    case "tile": tile = try SendFields.text(&reader, maximum: 4 * DeviceTemplate.maximumNameLength)
    case "azure":
      azure = [:]
      try reader.readObject { (key, reader) throws(JSONError) in azure[key.text] = try reader.readString() }
    default: return try readMember(key, from: &reader)
    }
    return true
  }

  /// Reads one member. Returns false and consumes nothing if a profile has no member of that name.
  package mutating func readMember(
    _ key: JSONReader.Key, from reader: inout JSONReader
  ) throws(JSONError) -> Bool {
    switch key {
    case "template": template = try DeviceTemplate.read(from: &reader)
    case "locale":
      let tag = try reader.readString()
      guard LanguageTag.isValid(tag) else { throw reader.error("must be \(LanguageTag.rule)") }
      locale = tag
    case "timeZone": timeZone = try SendFields.text(&reader, maximum: 64)
    case "attributes": attributes = try reader.readTemplateValues(maximum: Self.maximumAttributes)
    default: return false
    }
    return true
  }
}

extension DeviceTemplate: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      if !name.isEmpty { json.member("name", name) }
      json.member("body", body)
      if !headers.isEmpty { json.member("headers", sorted: headers) }
    }
  }

  /// Reads `{"name"?, "body", "headers"?}`. The body is not compiled: that needs the platform.
  package static func read(from reader: inout JSONReader) throws(JSONError) -> DeviceTemplate {
    var (name, body, headers): (String?, String?, [String: String]?)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "name": name = try reader.readTemplateName()
      case "body": body = try reader.readString()
      case "headers": headers = try PushHeader.read(from: &reader)
      default: throw reader.error("is not a known member")
      }
    }
    guard let body else { throw reader.error("must have a body") }
    return DeviceTemplate(name: name ?? "", body: body, headers: headers ?? [:])
  }
}
