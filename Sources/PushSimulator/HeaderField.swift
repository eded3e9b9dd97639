/// One header field of a request or an answer, as it was on the wire.
package struct HeaderField: Hashable, Sendable {
  package let name: String
  package let value: String

  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}
