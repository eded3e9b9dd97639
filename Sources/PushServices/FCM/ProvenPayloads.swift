import FanfareCore
import Synchronization

/// Which payloads FCM has lately taken for some device. An answer that blames the token of one device is believed only
/// then: FCM blames tokens for faults of the message too, and a broadcast of a bad message must not cost a fleet its
/// tokens. A native message that says something to one kind of devices is never proven: what Android's take may be
/// wrong for Apple's, and nobody here knows which are which.
final class ProvenPayloads: Sendable {
  /// How many are remembered.
  private static let capacity = 64

  private struct Guarded {
    var fingerprints: [Int] = []
    var next = 0
  }

  private let guarded = Mutex(Guarded())

  /// A device's service has taken the payload.
  func insert(_ rendering: RenderedPush) {
    guard rendering.isUniform else { return }
    let fingerprint = rendering.body.hashValue
    guarded.withLock { guarded in
      guard !guarded.fingerprints.contains(fingerprint) else { return }
      if guarded.fingerprints.count < Self.capacity {
        guarded.fingerprints.append(fingerprint)
      } else {
        guarded.fingerprints[guarded.next] = fingerprint
        guarded.next = (guarded.next + 1) % Self.capacity
      }
    }
  }

  /// Whether the payload has been taken lately.
  func contains(_ rendering: RenderedPush) -> Bool {
    let fingerprint = rendering.body.hashValue
    return guarded.withLock { $0.fingerprints.contains(fingerprint) }
  }
}
