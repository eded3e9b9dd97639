import ArgumentParser
import FanfareCore

/// Which dead letters a command is about.
struct LetterFilter: ParsableArguments {
  @Option(help: "Only letters with this reason.")
  var reason: ReasonArgument?

  @Option(help: "Only sends that have something for this platform; what cannot be read as a send has no platform.")
  var platform: PlatformArgument?

  @Option(help: ArgumentHelp("Only letters set aside at this time or later (RFC 3339).", valueName: "time"))
  var from: TimeArgument?

  @Option(help: ArgumentHelp("Only letters set aside before this time (RFC 3339).", valueName: "time"))
  var to: TimeArgument?

  func validate() throws {
    if let from, let to, from.time >= to.time { throw ValidationError("--to must be later than --from") }
  }

  /// Whether the letter is one of them.
  func matches(_ letter: DeadLetter) -> Bool {
    if let reason, letter.reason != reason.reason { return false }
    if let from, letter.at < from.time { return false }
    if let to, letter.at >= to.time { return false }
    guard let platform else { return true }
    do throws(RecordError) {
      return try SendRequest.decode(letter.value[...], recordTime: letter.at).coveredPlatforms.contains(
        platform.platform)
    } catch {
      return false
    }
  }
}
