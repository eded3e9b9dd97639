import ArgumentParser
import FanfareCore
import Roles

/// The options that select dead letters.
struct LetterFilter: ParsableArguments {
  @Option(help: "Only letters with this reason.")
  var reason: ReasonArgument?

  @Option(help: "Only sends with content for this platform; a record that cannot be read as a send has no platform.")
  var platform: PlatformArgument?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Only records dead-lettered at this time or later; \(TimeArgument.help).", valueName: "time"))
  var from: TimeArgument?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Only records dead-lettered before this time; \(TimeArgument.help).", valueName: "time"))
  var to: TimeArgument?

  func validate() throws {
    if let from, let to, from.time >= to.time { throw ValidationError("--to must be later than --from") }
  }

  func matches(_ letter: DeadLetter) -> Bool {
    if let reason, letter.reason != reason.reason { return false }
    if let from, letter.at < from.time { return false }
    if let to, letter.at >= to.time { return false }
    guard let platform else { return true }
    guard case .send(let send)? = letter.decodedRecord() else { return false }
    return send.coveredPlatforms.contains(platform.platform)
  }
}

/// A dead letter in a list: everything but the record's value.
struct LetterLine: OutputLine {
  /// The letter's place in the dead-letter topic.
  let letter: String
  let reason: String
  let detail: String
  /// The record's original place.
  let origin: String
  let at: String
  /// The size of the record's value in bytes.
  let valueSize: Int
  /// Whether the value is complete, so that the record can be redriven.
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

  /// The letter as a line of text.
  var text: String {
    Printable.line(
      "\(letter)  \(at)  \(reason)  from \(origin)  \(valueSize) bytes\(isWhole ? "" : " (not all kept)")  \(detail)")
  }
}
