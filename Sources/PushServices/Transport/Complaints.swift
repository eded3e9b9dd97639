import Synchronization

/// What keeps a sender from working, by subject, each until it is known to be over.
final class Complaints: Sendable {
  /// What can be wrong, the worst last.
  enum Subject: Int, CaseIterable, Sendable {
    case connection
    case answer
    case credential
  }

  private let current = Mutex<[Subject: String]>([:])

  /// The worst that is wrong now; nil when nothing is.
  var worst: String? {
    current.withLock { $0 }.max { $0.key.rawValue < $1.key.rawValue }?.value
  }

  /// Something is wrong. True when it was not known before in the same words, and so is worth a line in the log.
  @discardableResult
  func set(_ subject: Subject, _ text: String) -> Bool {
    current.withLock { $0.updateValue(text, forKey: subject) != text }
  }

  /// These are over.
  func clear(_ subjects: Subject...) {
    current.withLock { current in
      guard !current.isEmpty else { return }
      for subject in subjects { current[subject] = nil }
    }
  }
}
