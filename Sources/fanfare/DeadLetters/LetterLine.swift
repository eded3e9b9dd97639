import FanfareCore

/// What a list says of a dead letter: everything but the record that was set aside.
struct LetterLine: Encodable {
  /// The letter's place in the dead-letter topic.
  let letter: String
  let reason: String
  let detail: String
  /// Where the record lay.
  let origin: String
  let at: String
  /// How many bytes the record's value had.
  let valueSize: Int
  /// Whether all of them are kept, so that the record can be put back.
  let isWhole: Bool

  /// `letter`, for sorting.
  let place: LogPlace

  private enum CodingKeys: CodingKey {
    case letter, reason, detail, origin, at, valueSize, isWhole
  }

  init(_ item: DeadLetterBox.Item) {
    place = item.place
    letter = item.place.description
    reason = item.letter.reason.rawValue
    detail = item.letter.detail
    origin = "\(item.letter.origin.topic)/\(item.letter.origin.partition)/\(item.letter.origin.offset)"
    at = item.letter.at.description
    valueSize = item.letter.valueSize
    isWhole = item.letter.isWhole
  }

  /// For people.
  var text: String {
    "\(letter)  \(at)  \(reason)  from \(origin)  \(valueSize) bytes\(isWhole ? "" : " (not all kept)")  \(detail)"
  }
}
