import FanfareCore

/// Small numbers for words, as columns keep them. They are in files: never change one.
enum StoredCode {
  /// A platform's number: its bit in `PlatformSet`.
  static func code(_ platform: Platform) -> UInt8 { PlatformSet(platform).rawValue }

  /// A platform by its number; nil for one that this release does not know.
  static func platform(_ code: UInt8) -> Platform? { Platform.allCases.first { StoredCode.code($0) == code } }

  /// An outcome's number.
  static func code(_ outcome: DeviceResult.Outcome) -> UInt8 {
    switch outcome {
    case .delivered: 1
    case .rejected: 2
    case .deviceGone: 3
    case .expired: 4
    case .failed: 5
    case .unconfirmed: 6
    }
  }

  /// An outcome by its number.
  static func outcome(_ code: UInt8) -> DeviceResult.Outcome? {
    DeviceResult.Outcome.allCases.first { StoredCode.code($0) == code }
  }

  /// A state's number.
  static func code(_ state: StatusRecord.State) -> UInt8 {
    switch state {
    case .settled: 1
    case .noTarget: 2
    case .expired: 3
    case .deadLettered: 4
    case .cancelled: 5
    }
  }

  /// A state by its number.
  static func state(_ code: UInt8) -> StatusRecord.State? {
    StatusRecord.State.allCases.first { StoredCode.code($0) == code }
  }
}
