/// A record that could not be processed, with all data needed to understand and redrive it.
package struct DeadLetter: Hashable, Sendable {
  /// Why it was dead-lettered. The raw values are stable.
  package enum Reason: String, CaseIterable, Sendable {
    /// Not a valid record of its type: bad JSON, missing or invalid fields.
    case undecodable
    /// A record type, or a version of one, that this program does not know.
    case unknownType
    /// It names a hub that this deployment does not serve.
    case unknownHub
    /// Larger than the limit for its type.
    case tooLarge
    /// It came through the ingress topic of another hub than the one it names.
    case foreignHub
  }

  package let reason: Reason
  /// The problem. Names the field and contains no part of its value.
  package let detail: String
  /// The record's position in the log.
  package let origin: Origin
  /// When it was dead-lettered.
  package let at: UnixTime
  package let key: [UInt8]?
  /// The record's value; of a very large one, its beginning.
  package let value: [UInt8]
  /// The size of the record's value in bytes.
  package let valueSize: Int

  /// Whether the value was kept completely.
  package var isWhole: Bool { value.count == valueSize }

  /// A position in the log.
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

  /// `valueSize` is needed only if `value` is cut.
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
