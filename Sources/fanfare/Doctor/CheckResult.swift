import Foundation

/// The result of one check of `fanfare doctor`: right, or wrong with the way to mend it.
struct CheckResult: Sendable, Encodable, Hashable {
  enum Level: String, Encodable, Sendable, Comparable {
    case ok, warning, wrong

    static func < (left: Self, right: Self) -> Bool { left.order < right.order }
    private var order: Int { self == .ok ? 0 : self == .warning ? 1 : 2 }
  }

  /// The subject of the check: `kafka`, `push default apns`.
  let area: String
  let level: Level
  let detail: String
  /// The action for an operator; nil if none is needed.
  let remedy: String?

  static func ok(_ area: String, _ detail: String) -> Self {
    Self(area: area, level: .ok, detail: detail, remedy: nil)
  }

  static func warning(_ area: String, _ detail: String, remedy: String) -> Self {
    Self(area: area, level: .warning, detail: detail, remedy: remedy)
  }

  static func wrong(_ area: String, _ detail: String, remedy: String) -> Self {
    Self(area: area, level: .wrong, detail: detail, remedy: remedy)
  }

  /// The result as lines of text.
  var lines: [String] {
    let mark = level.rawValue.padding(toLength: 9, withPad: " ", startingAt: 0)
    return ["\(mark)\(area): \(detail)"] + (remedy.map { ["         \($0)"] } ?? [])
  }
}
