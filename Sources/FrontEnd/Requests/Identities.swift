import FanfareCore
import Synchronization

/// Ids for requests and sends. They need to be distinct, not unguessable, for knowing one lets nobody see anything:
/// only the seed comes from the system, which a call would cost for every number.
enum Identities {
  private static let generator = Mutex(SplitMix64(seed: .random(in: .min ... .max)))

  /// A random id (UUID version 4).
  static func random<Subject>(of subject: Subject.Type) -> Identifier<Subject> {
    generator.withLock { .random(using: &$0) }
  }

  /// The id of a send that is accepted now (UUID version 7).
  static func send(at now: UnixTime) -> SendID {
    generator.withLock { .timeOrdered(at: now, using: &$0) }
  }
}
