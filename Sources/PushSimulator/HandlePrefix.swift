package import FanfareCore

/// A fault by handle: a device whose handle has this prefix always gets the same answer, if nothing else is wrong with
/// the push.
///
/// APNs tokens are hexadecimal, and so are their prefixes; one random token in 6,000 has one of them.
package struct HandlePrefix: Hashable, Sendable {
  package let platform: Platform
  package let prefix: String
  package let action: Fault.Action
  /// The effect, in words.
  package let meaning: String

  package init(_ platform: Platform, _ prefix: String, _ action: Fault.Action, _ meaning: String) {
    (self.platform, self.prefix, self.action, self.meaning) = (platform, prefix, action, meaning)
  }

  /// All prefixes.
  package static let table: [HandlePrefix] = SimulatedPushServices.all.flatMap { $0.prefixes }

  /// The table by platform and first letter, so that nearly every handle is decided by one look.
  private static let index: [[[HandlePrefix]]] = Platform.allCases.map { platform in
    var index = [[HandlePrefix]](repeating: [], count: 256)
    for entry in table where entry.platform == platform {
      if let first = entry.prefix.utf8.first { index[Int(first)].append(entry) }
    }
    return index
  }

  /// The fault of a handle, if it has one.
  static func action(for handle: String, platform: Platform) -> Fault.Action? {
    guard let first = handle.utf8.first else { return nil }
    return index[platform.ordinal][Int(first)].first { handle.hasPrefix($0.prefix) }?.action
  }
}
