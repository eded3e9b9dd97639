/// A record that could not be processed, kept with all that is needed to understand it and to send it again.
package struct DeadLetter: Hashable, Sendable {
  /// Why, as a stable word.
  package enum Reason: String, CaseIterable, Sendable {
    /// Not a record of a known type: bad JSON, missing or invalid fields.
    case undecodable
    /// A record type, or version of one, that this program does not know.
    case unknownType
    /// It names a hub that this deployment does not serve.
    case unknownHub
    /// Larger than a record may be.
    case tooLarge
  }

  package let reason: Reason
  /// What exactly was wrong; names the field, and contains nothing of its value.
  package let detail: String
  /// Where the record lay.
  package let origin: Origin
  /// When it was set aside.
  package let at: UnixTime
  /// The record's key, as it was.
  package let key: [UInt8]?
  /// The record's value, as it was; of a very large one, what was kept of it.
  package let value: [UInt8]
  /// How many bytes the record's value had.
  package let valueSize: Int

  /// Whether the value is there to its last byte.
  package var isWhole: Bool { value.count == valueSize }

  /// A record's place in the log.
  package struct Origin: Hashable, Sendable {
    package let topic: String
    package let partition: Int32
    package let offset: Int64

    package init(topic: String, partition: Int32, offset: Int64) {
      self.topic = topic
      self.partition = partition
      self.offset = offset
    }
  }

  /// `valueSize`: where not all of the value is given.
  package init(
    reason: Reason, detail: String, origin: Origin, at: UnixTime, key: [UInt8]?, value: [UInt8], valueSize: Int? = nil
  ) {
    self.reason = reason
    self.detail = detail
    self.origin = origin
    self.at = at
    self.key = key
    self.value = value
    self.valueSize = valueSize ?? value.count
  }
}
