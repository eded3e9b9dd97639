/// A send rendered for one platform, once for all its devices. Made and understood by that platform's sender alone.
package struct RenderedPush: Sendable {
  /// Header fields of the service that follow from the send, names in lower case.
  package let headers: [Field]
  /// The payload; where the service wants the device's address inside, it goes in at `handleOffset`.
  package let body: [UInt8]
  /// Where in `body` the device's address is inserted; nil where it travels outside the body.
  package let handleOffset: Int?
  /// Whether the service finds it good for all devices where it finds it good for one: not if its caller says something
  /// of its own to one kind of them.
  package let isUniform: Bool

  package init(headers: [Field], body: [UInt8], handleOffset: Int? = nil, isUniform: Bool = true) {
    self.headers = headers
    self.body = body
    self.handleOffset = handleOffset
    self.isUniform = isUniform
  }

  /// One header field.
  package struct Field: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }
}
