extension Registration {
  /// The registration as its user and operators see it, and as a line of an export: one JSON object.
  package var json: [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(512)
    output.append(literal: #"{"id":"#)
    output.appendJSON(id)
    output.append(literal: #","user":"#)
    output.appendJSON(user)
    output.append(literal: #","platform":"#)
    output.appendJSON(platform.rawValue)
    output.append(literal: #","handle":"#)
    output.appendJSON(handle)
    if let installation {
      output.append(literal: #","installation":"#)
      output.appendJSON(installation)
    }
    output.append(literal: #","tags":["#)
    for (index, tag) in tags.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      output.appendJSON(tag)
    }
    output.append(literal: #"],"registeredAt":"#)
    output.appendJSON(registeredAt)
    output.append(literal: #","createdAt":"#)
    output.appendJSON(createdAt)
    output.append(literal: #","lastSeen":"#)
    output.appendJSON(seenAt)
    output.append(UInt8(ascii: "}"))
    return output
  }
}
