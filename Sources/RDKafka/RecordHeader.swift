/// One header of a record.
package struct RecordHeader: Sendable, Hashable {
  /// The name; names need not be unique within a record.
  package var name: String
  /// The value, any bytes.
  package var value: [UInt8]

  /// Makes a header.
  package init(name: String, value: [UInt8]) {
    self.name = name
    self.value = value
  }

  /// Makes a header whose value is text.
  package init(name: String, text: String) {
    self.init(name: name, value: Array(text.utf8))
  }
}
