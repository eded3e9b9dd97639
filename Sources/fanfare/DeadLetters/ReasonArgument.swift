import ArgumentParser
import FanfareCore

/// A reason of dead letters as the command line takes it.
struct ReasonArgument: ExpressibleByArgument {
  let reason: DeadLetter.Reason

  init?(argument: String) {
    guard let reason = DeadLetter.Reason(rawValue: argument) else { return nil }
    self.reason = reason
  }

  static var allValueStrings: [String] { DeadLetter.Reason.allCases.map(\.rawValue) }
}
