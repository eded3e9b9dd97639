import DequeModule
import FanfareCore

/// Guards one hub's registrations on one platform against mass removal by mistake.
///
/// *Trusting*: devices reported dead are held for a moment and then unregistered. *Suspended*: too many look dead; they
/// are reported and stay registered. It becomes trusting again when their share has fallen to half of the limit.
struct UnregisterGuard: Sendable {
  /// The share of dead devices at which the fault must be ours: a wrong environment, key or
  /// project.
  private let policy: UnregisterPolicy
  private var answers: Deque<Bool> = []
  private var gone = 0
  /// Whether dead devices are reported but stay registered.
  private(set) var isSuspended = false
  /// Devices reported dead, held for up to a second: if too many follow, none of them is
  /// unregistered.
  private var suspects: [DeadDevice] = []

  init(policy: UnregisterPolicy) {
    self.policy = policy
  }

  var hasSuspects: Bool { !suspects.isEmpty }

  /// Notes a definite answer about one device. Returns whether the state has changed.
  mutating func record(isGone: Bool) -> Bool {
    answers.append(isGone)
    if isGone { gone += 1 }
    if answers.count > policy.window, answers.removeFirst() { gone -= 1 }
    let share = Double(gone) / Double(answers.count)
    let wasSuspended = isSuspended
    isSuspended = wasSuspended ? share >= policy.share / 2 : gone >= policy.minimumCount && share >= policy.share
    if isSuspended, !wasSuspended { suspects.removeAll() }
    return isSuspended != wasSuspended
  }

  /// Holds a device reported dead.
  /// A device without room will be reported dead again with its next push.
  mutating func hold(_ device: DeadDevice) {
    if !isSuspended, suspects.count < 10_000 { suspects.append(device) }
  }

  mutating func takeSuspects() -> [DeadDevice] {
    defer { suspects.removeAll() }
    return suspects
  }
}

/// When the worker stops believing that devices are dead.
package struct UnregisterPolicy: Hashable, Sendable {
  /// How many of the latest answers count, per hub and platform.
  package var window = 500
  /// A lower number of dead devices among them is never suspicious.
  package var minimumCount = 50
  /// The share of dead devices that suspends unregistering; below half of it unregistering resumes.
  package var share = 0.5

  package init() {}
}
