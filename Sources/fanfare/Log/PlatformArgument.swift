import ArgumentParser
import FanfareCore

/// A platform as the command line takes it: in any letter case, and `gcm` for `fcm`.
struct PlatformArgument: ExpressibleByArgument {
  let platform: Platform

  init?(argument: String) {
    guard let platform = Platform(name: argument) else { return nil }
    self.platform = platform
  }

  static var allValueStrings: [String] { Platform.allCases.map(\.rawValue) }
}
