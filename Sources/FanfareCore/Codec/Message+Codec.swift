extension Message {
  /// The most keys in `data`.
  package static let maximumDataKeys = 100

  /// Appends the `message` member's value. Keys of `data` are sorted, so that equal messages have equal bytes.
  func append(to output: inout [UInt8]) {
    var opening = UInt8(ascii: "{")
    func member(_ name: StaticString) {
      output.append(opening)
      opening = UInt8(ascii: ",")
      output.append(literal: name)
    }
    if let title {
      member(#""title":"#)
      output.appendJSON(title)
    }
    if let body {
      member(#""body":"#)
      output.appendJSON(body)
    }
    if !data.isEmpty {
      member(#""data":"#)
      var opening = UInt8(ascii: "{")
      for (key, value) in data.sorted(by: { $0.key < $1.key }) {
        output.append(opening)
        opening = UInt8(ascii: ",")
        output.appendJSON(key)
        output.append(UInt8(ascii: ":"))
        output.appendJSON(value)
      }
      output.append(UInt8(ascii: "}"))
    }
    if let badge {
      member(#""badge":"#)
      output.appendJSON(badge)
    }
    if let sound {
      member(#""sound":"#)
      output.appendJSON(sound)
    }
    if opening == UInt8(ascii: "{") { output.append(opening) }
    output.append(UInt8(ascii: "}"))
  }

  /// Reads the `message` member's value; see `SendFields.read` for `strict`.
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
            // Two spellings of what Unicode counts as one text are one key of a dictionary: one of the values would be
            // lost.
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
