extension Content {
  /// Writes the members `message`, `native` and `template` if they have a value.
  package func writeMembers(to json: inout JSONWriter) {
    json.member("message", ifPresent: message)
    json.member("template", ifPresent: template)
    guard !native.isEmpty || !headers.isEmpty else { return }
    json.object("native") { json in
      for entry in native.entries { json.member(named: entry.platform.name, entry.payload) }
      if !headers.isEmpty { json.member("headers", sorted: headers) }
    }
  }
}

extension NativePayload: JSONWritable {
  package func write(to json: inout JSONWriter) {
    switch self {
    case .json(let object): json.append { $0.append(contentsOf: object) }
    case .text(let text): text.write(to: &json)
    }
  }
}

extension JSONWriter {
  /// Writes a member whose value is an object of strings, sorted by their names.
  package mutating func member(_ name: StaticString, sorted values: [String: String]) {
    object(name) { json in
      for (key, value) in values.sorted(by: { $0.key < $1.key }) { json.member(named: key, value) }
    }
  }
}

extension TemplateContent: JSONWritable {
  /// Writes the value of the `template` member.
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("name", ifPresent: name)
      json.member("version", ifPresent: version)
      json.member("properties", sorted: properties)
    }
  }

  /// Reads the value of the `template` member. See `SendFields.read` for `strict`.
  package static func read(from reader: inout JSONReader, strict: Bool) throws(JSONError) -> TemplateContent {
    var (name, version, properties): (String?, Int?, [String: String]?)
    try reader.readObject { (key, reader) throws(JSONError) in
      func once(_ isFirst: Bool) throws(JSONError) {
        guard isFirst || !strict else { throw reader.duplicateMember() }
      }
      switch key {
      case "name":
        try once(name == nil)
        name = try reader.readTemplateName()
      case "version":
        try once(version == nil)
        let number = try reader.readInteger()
        guard (1...Int64(Int32.max)).contains(number) else { throw reader.error("must be 1 to \(Int32.max)") }
        version = Int(number)
      case "properties":
        try once(properties == nil)
        properties = try reader.readTemplateValues(maximum: maximumProperties)
      default:
        guard !strict else { throw reader.error("is not a known member") }
        try reader.skipValue()
      }
    }
    return TemplateContent(name: name, version: version, properties: properties ?? [:])
  }
}

extension JSONReader {
  /// Reads a template's name.
  package mutating func readTemplateName() throws(JSONError) -> String {
    let name = try readString()
    guard DeviceTemplate.isName(name) else { throw error("must have \(DeviceTemplate.nameRule)") }
    return name
  }

  /// Reads an object of strings that templates may insert. Returns them by their names in lower case.
  package mutating func readTemplateValues(maximum: Int) throws(JSONError) -> [String: String] {
    var values: [String: String] = [:]
    try readObject { (key, reader) throws(JSONError) in
      let name = key.text.lowercased()
      guard TemplateExpression.isName(name) else {
        throw reader.error("must have a name of \(TemplateExpression.nameRule)")
      }
      guard values.updateValue(try reader.readString(), forKey: name) == nil else { throw reader.duplicateMember() }
      guard values.count <= maximum else { throw reader.error("is one value more than the \(maximum) allowed") }
    }
    return values
  }
}

extension Message: JSONWritable {
  /// The most keys in `data`.
  package static let maximumDataKeys = 100

  /// Writes the value of the `message` member.
  /// Keys of `data` are sorted, so that equal messages have equal bytes.
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("title", ifPresent: title)
      json.member("body", ifPresent: body)
      if !data.isEmpty {
        json.object("data") { json in
          for (key, value) in data.sorted(by: { $0.key < $1.key }) { json.member(named: key, value) }
        }
      }
      json.member("badge", ifPresent: badge)
      json.member("sound", ifPresent: sound)
    }
  }

  /// Reads the value of the `message` member. See `SendFields.read` for `strict`.
  package static func read(from reader: inout JSONReader, strict: Bool) throws(JSONError) -> Message {
    var (title, body, sound): (String?, String?, String?)
    var data: [String: String] = [:]
    var badge: Int?
    try reader.readObject { (key, reader) throws(JSONError) in
      func once(_ isFirst: Bool) throws(JSONError) {
        guard isFirst || !strict else { throw reader.duplicateMember() }
      }
      switch key {
      case "title":
        try once(title == nil)
        title = try reader.readString()
      case "body":
        try once(body == nil)
        body = try reader.readString()
      case "sound":
        try once(sound == nil)
        sound = try SendFields.text(&reader, maximum: 256)
      case "badge":
        try once(badge == nil)
        let number = try reader.readInteger()
        guard (0...Int64(Int32.max)).contains(number) else { throw reader.error("must be 0 to \(Int32.max)") }
        badge = Int(number)
      case "data":
        try once(data.isEmpty)
        data = [:]
        try reader.readObject { (key, reader) throws(JSONError) in
          guard !key.isEmpty else { throw reader.error("must not have an empty key") }
          let name = key.text
          if let former = data.index(forKey: name) {
            // A dictionary compares keys by canonical equivalence: two spellings would lose one of the values.
            guard key.hasBytes(of: data.keys[former]) else {
              throw reader.error("is another spelling of a key before it")
            }
            guard !strict else { throw reader.duplicateMember() }
          }
          data[name] = try reader.readString()
          guard data.count <= maximumDataKeys else {
            throw reader.error("is one key more than the \(maximumDataKeys) allowed")
          }
        }
      default:
        guard !strict else { throw reader.error("is not a known member") }
        try reader.skipValue()
      }
    }
    let message = Message(title: title, body: body, data: data, badge: badge, sound: sound)
    guard !message.isEmpty else { throw reader.error("must not be empty") }
    return message
  }
}
