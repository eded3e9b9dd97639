extension Content {
  /// Appends the `message` and `native` members that are there, each with a comma before it.
  func append(to output: inout [UInt8]) {
    if let message {
      output.append(literal: #","message":"#)
      message.append(to: &output)
    }
    guard apns != nil || fcm != nil || wns != nil else { return }
    output.append(literal: #","native":{"#)
    var comma = false
    func member(_ name: StaticString) {
      if comma { output.append(UInt8(ascii: ",")) }
      comma = true
      output.append(literal: name)
    }
    if let apns {
      member(#""apns":"#)
      output.append(contentsOf: apns)
    }
    if let fcm {
      member(#""fcm":"#)
      output.append(contentsOf: fcm)
    }
    if let wns {
      member(#""wns":"#)
      output.appendJSON(wns)
    }
    output.append(UInt8(ascii: "}"))
  }
}
