import Synchronization

/// What keeps a sender from working, by subject, each until it is known to be over. That no connection was to be had is
/// known of the moment alone: nobody may ask for one for long, and one host of many may have been the only one to fail.
final class Complaints: Sendable {
  /// What can be wrong, the worst last.
  enum Subject: Int, CaseIterable, Sendable {
    case connection
    case answer
    case credential
  }

  private struct Complaint {
    let text: String
    let madeAt: ContinuousClock.Instant
  }

  /// So long after the last failure there is a `connection` to complain of; whoever needs one tries more often.
  static let connectionPatience: Duration = .seconds(60)

  private let current = Mutex<[Subject: Complaint]>([:])

  /// The worst that is wrong at that moment; nil when nothing is.
  func worst(at now: ContinuousClock.Instant = .now) -> String? {
    current.withLock { $0 }.filter { Self.holds($0.value, of: $0.key, at: now) }
      .max { $0.key.rawValue < $1.key.rawValue }?.value.text
  }

  /// Something is wrong. True when it was not known before in the same words, and so is worth a line in the log.
  @discardableResult
  func set(_ subject: Subject, _ text: String, at now: ContinuousClock.Instant = .now) -> Bool {
    let last = current.withLock { $0.updateValue(Complaint(text: text, madeAt: now), forKey: subject) }
    guard let last, Self.holds(last, of: subject, at: now) else { return true }
    return last.text != text
  }

  /// These are over.
  func clear(_ subjects: Subject...) {
    current.withLock { current in
      guard !current.isEmpty else { return }
      for subject in subjects { current[subject] = nil }
    }
  }

  private static func holds(_ complaint: Complaint, of subject: Subject, at now: ContinuousClock.Instant) -> Bool {
    subject != .connection || now - complaint.madeAt < connectionPatience
  }
}
