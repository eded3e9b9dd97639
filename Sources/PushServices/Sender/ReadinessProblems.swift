import Synchronization

/// The problems that keep a sender from working, at most one per subject.
///
/// A problem stays until it is cleared. A `connection` problem also ends by itself: a pool without requests does not
/// reconnect, and of many WNS hosts only one may have failed.
final class ReadinessProblems: Sendable {
  /// The subjects, the worst last.
  enum Subject: Int, CaseIterable, Sendable {
    case connection
    case answer
    case credential
  }

  private struct Problem {
    let text: String
    let notedAt: ContinuousClock.Instant

    func holds(for subject: Subject, at now: ContinuousClock.Instant) -> Bool {
      subject != .connection || now - notedAt < connectionProblemLifetime
    }
  }

  /// How long a `connection` problem holds after the last failure; a sender with work to do tries more often.
  static let connectionProblemLifetime: Duration = .seconds(60)

  private let current = Mutex<[Subject: Problem]>([:])

  /// The worst current problem; nil if there is none.
  func worst(at now: ContinuousClock.Instant = .now) -> String? {
    current.withLock { $0 }.filter { $0.value.holds(for: $0.key, at: now) }
      .max { $0.key.rawValue < $1.key.rawValue }?.value.text
  }

  /// Notes a problem. Returns true if it was not known in the same words, so that it is worth a log line.
  @discardableResult
  func note(_ subject: Subject, _ text: String, at now: ContinuousClock.Instant = .now) -> Bool {
    let last = current.withLock { $0.updateValue(Problem(text: text, notedAt: now), forKey: subject) }
    guard let last, last.holds(for: subject, at: now) else { return true }
    return last.text != text
  }

  func clear(_ subjects: Subject...) {
    current.withLock { current in
      guard !current.isEmpty else { return }
      for subject in subjects { current[subject] = nil }
    }
  }
}
