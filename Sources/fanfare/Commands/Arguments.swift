import ArgumentParser
import FanfareCore

/// A dead letter on the command line: its place in the topic, written `partition/offset`.
struct LetterArgument: ExpressibleByArgument {
  let place: LogPlace

  init?(argument: String) {
    guard let place = LogPlace(argument, separator: "/") else { return nil }
    self.place = place
  }
}

/// A place in the log on the command line, written `topic/partition/offset`.
struct PlaceArgument: ExpressibleByArgument {
  let place: AuditPlace

  init?(argument: String) {
    let parts = argument.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, let place = LogPlace(parts[1], separator: "/") else { return nil }
    self.place = AuditPlace(topic: String(parts[0]), partition: place.partition, offset: place.offset)
  }
}

/// A platform on the command line: in any letter case, and `gcm` for `fcm`.
struct PlatformArgument: ExpressibleByArgument {
  let platform: Platform

  init?(argument: String) {
    guard let platform = Platform(name: argument) else { return nil }
    self.platform = platform
  }

  static var allValueStrings: [String] { Platform.allCases.map(\.name) }
}

/// A dead letter's reason on the command line.
struct ReasonArgument: ExpressibleByArgument {
  let reason: DeadLetter.Reason

  init?(argument: String) {
    guard let reason = DeadLetter.Reason(rawValue: argument) else { return nil }
    self.reason = reason
  }

  static var allValueStrings: [String] { DeadLetter.Reason.allCases.map(\.rawValue) }
}
