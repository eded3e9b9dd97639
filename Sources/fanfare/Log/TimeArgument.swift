import ArgumentParser
import FanfareCore

/// A moment as the command line takes it.
struct TimeArgument: ExpressibleByArgument {
  let time: UnixTime

  init?(argument: String) {
    guard let time = UnixTime(argument) else { return nil }
    self.time = time
  }
}
